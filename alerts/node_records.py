"""Readings of GPUs, engine cores and tenants -> the series that the node's alerts are written over."""

from alerts.node_sources import dcgm, dcgm_bits, first_of, ours, smi, smi_reasons
from alerts.promql import promql, window
from alerts.rule import Record
from slo.names import labels, node
from slo.names import node_records as records
from slo.spec import Spec
from slo.xids import HARDWARE, codes_of

_MEBIBYTE = 1048576


def gpu_records(spec: Spec) -> tuple[Record, ...]:
    """Return one series a GPU and quantity, whoever measured it; for every evaluation."""
    return (
        *_activity_records(),
        *_memory_records(spec),
        *_held_records(),
        *_fault_records(spec),
    )


def _activity_records() -> tuple[Record, ...]:
    mean = 'stat="mean"'
    utilisation = first_of(
        ours(f"{node.GPU_UTILISATION_RATIO}{{{mean}}}"),
        dcgm('DCGM_FI_DEV_GPU_UTIL{GPU_I_ID=""} / 100'),
        smi("nvidia_smi_utilization_gpu_ratio"),
    )
    active = first_of(
        ours(f"{node.GPU_SM_ACTIVE_RATIO}{{{mean}}}"),
        dcgm('DCGM_FI_PROF_SM_ACTIVE{GPU_I_ID=""} or DCGM_FI_PROF_GR_ENGINE_ACTIVE{GPU_I_ID=""}'),
        records.GPU_UTILISATION,
    )
    tensor = first_of(
        ours(f"{node.GPU_TENSOR_ACTIVE_RATIO}{{{mean}}}"),
        dcgm('DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{GPU_I_ID=""}'),
    )
    dram = first_of(
        ours(f"{node.GPU_DRAM_BANDWIDTH_RATIO}{{{mean}}}"), dcgm('DCGM_FI_PROF_DRAM_ACTIVE{GPU_I_ID=""}')
    )
    return (
        Record(records.GPU_UTILISATION, utilisation),
        Record(records.GPU_ACTIVE, active),
        Record(records.GPU_TENSOR, tensor),
        Record(records.GPU_DRAM, dram),
    )


def _memory_records(spec: Spec) -> tuple[Record, ...]:
    """Other exporters do not tell whether a reading is settled: then the last minute's spread does."""
    spread = spec.node.memory_settled.spread_bytes
    used, free = 'DCGM_FI_DEV_FB_USED{GPU_I_ID=""}', 'DCGM_FI_DEV_FB_FREE{GPU_I_ID=""}'
    smi_used, smi_free = "nvidia_smi_memory_used_bytes", "nvidia_smi_memory_free_bytes"
    own = promql(f"""
        {node.GPU_MEMORY_USED_BYTES}{{stat="last"}}
        / ignoring (stat) ({node.GPU_MEMORY_USED_BYTES}{{stat="last"}} + ignoring (stat) {node.GPU_MEMORY_FREE_BYTES})
        unless on (uuid) {node.GPU_MEMORY_UNIFIED} == 1
    """)
    settled = promql(f"""
        {records.GPU_MEMORY_USED} and on (uuid) (
          {node.GPU_MEMORY_SETTLED} == 1
          or label_replace(
          max_over_time({used}[1m]) - min_over_time({used}[1m]) < {spread / _MEBIBYTE:.6g},
          "uuid", "$1", "UUID", "(.+)")
          or label_replace(
          max_over_time({smi_used}[1m]) - min_over_time({smi_used}[1m]) < {spread},
          "uuid", "GPU-$1", "uuid", "([0-9a-f]{{8}}-.+)")
        )
    """)
    return (
        Record(
            records.GPU_MEMORY_USED,
            first_of(
                ours(own), dcgm(f"{used} / ({used} + {free})"), smi(f"{smi_used} / ({smi_used} + {smi_free})")
            ),
        ),
        Record(records.GPU_MEMORY_SETTLED, settled),
    )


def _held_records() -> tuple[Record, ...]:
    """Idle, application clocks and display hold clocks too; they are no throttling and are left out."""
    causes = {
        "thermal": (("sw_thermal_slowdown", "hw_thermal_slowdown"), (0x20, 0x40)),
        "power_brake": (("hw_slowdown", "hw_power_brake_slowdown"), (0x8, 0x80)),
        "power_cap": (("sw_power_cap",), (0x4,)),
    }
    return tuple(
        Record(
            records.GPU_HELD,
            first_of(
                ours(f'{node.GPU_CLOCK_EVENT_RATIO}{{reason=~"{"|".join(reasons)}"}}'),
                dcgm(dcgm_bits(*bits)),
                smi(smi_reasons(*reasons)),
            ),
            {"cause": cause},
        )
        for cause, (reasons, bits) in causes.items()
    )


def _fault_records(spec: Spec) -> tuple[Record, ...]:
    limits = spec.node.alerts
    ecc = (
        f'{node.GPU_ECC_ERRORS_TOTAL}{{severity="uncorrected",lifetime="volatile"}}',
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "nvidia_smi_ecc_errors_uncorrected_volatile_total",
    )
    over = limits.ecc_window
    return (
        _xids("hardware", HARDWARE, limits.xid_window),
        _xids("application", ("application",), limits.xid_window),
        Record(
            records.GPU_ECC,
            first_of(ours(_rise(ecc[0], over)), dcgm(_rise(ecc[1], over)), smi(_rise(ecc[2], over))),
        ),
        Record(
            records.GPU_REMAP_FAILED,
            first_of(
                ours(node.GPU_ROW_REMAP_FAILED),
                dcgm("clamp_max(DCGM_FI_DEV_ROW_REMAP_FAILURE, 1)"),
                smi("nvidia_smi_remapped_rows_failure"),
            ),
        ),
        Record(
            records.GPU_REMAP_PENDING,
            first_of(
                ours(node.GPU_ROW_REMAP_PENDING),
                dcgm("clamp_max(DCGM_FI_DEV_ROW_REMAP_PENDING, 1)"),
                smi("nvidia_smi_remapped_rows_pending"),
            ),
        ),
        Record(records.GPUS_MISSING, _missing()),
    )


def _rise(counter: str, seconds: int) -> str:
    """How much a counter rose; one that was there before anybody looked counts in full at first."""
    span = window(seconds)
    return f"(({counter} unless {counter} offset {span[1:-1]}) or increase({counter}{span}))"


def _xids(name: str, classes: tuple[str, ...], seconds: int) -> Record:
    """dcgm's gauge is the last code seen and never resets: a change to one of the codes is an event."""
    span, gauge, codes = window(seconds), "DCGM_FI_DEV_XID_ERRORS", codes_of(*classes)
    is_one = " or ".join(f"{gauge} == {code}" for code in codes)
    pattern = "|".join(map(str, codes))
    recent = f'time() - nvidia_smi_xid_last_timestamp_seconds{{xid=~"{pattern}"}} < {seconds}'
    return Record(
        records.GPU_XIDS,
        first_of(
            f"sum without (class) ({_rise_by_class('|'.join(classes), span)})",
            dcgm(f"changes({gauge}{span}) and ({is_one})"),
            smi(f"max by (instance, uuid) (({recent}) * 0 + 1)"),
        ),
        {"class": name},
    )


def _rise_by_class(classes: str, span: str) -> str:
    return f'increase({node.GPU_XID_TOTAL}{{class=~"{classes}"}}{span})'


def _missing() -> str:
    """Other exporters only stop telling of a GPU: fewer than ten minutes ago, with the exporter up."""
    lost = [
        promql(f"""
            (count by (instance) ({series} offset 10m)
            - (count by (instance) ({series}) or count by (instance) ({series} offset 10m) * 0))
            and on (instance) up == 1
        """)
        for series in ("DCGM_FI_DEV_GPU_TEMP", "nvidia_smi_gpu_info")
    ]
    own = f"max by (instance) ({node.GPUS_EXPECTED} - {node.GPUS_HEALTHY})"
    return "\nor on (instance)\n".join([own, *lost])


def engines_own(expression: str) -> str:
    """The engine's instance, also where Prometheus renamed it because the job lacks honor_labels."""
    return f'label_replace({expression}, "{labels.INSTANCE}", "$1", "exported_{labels.INSTANCE}", "(.+)")'


def _core_rate(metric: str, span: str) -> str:
    return f"max by (instance, dp_rank, node) ({engines_own(f'rate({metric}{span})')})"


def core_records(spec: Spec) -> tuple[Record, ...]:
    """Return what engine cores did with their CPUs and GPUs; each builds on those before it."""
    span = window(spec.signal("cpu-binding").window)
    wall = _core_rate(node.ENGINE_CORE_WALL_SECONDS_TOTAL, span)
    busy = _core_rate(node.ENGINE_CORE_BUSY_SECONDS_TOTAL, span)
    waited = _core_rate(node.ENGINE_CORE_RUNQUEUE_SECONDS_TOTAL, span)
    on_cpus = _core_rate(node.ENGINE_CORE_BOUND_CPUS_BUSY_SECONDS_TOTAL, span)
    cpus = f"max by (instance, dp_rank, node) ({engines_own(node.ENGINE_CORE_BOUND_CPUS)} > 0)"
    info = f"max by (instance, dp_rank, uuid, node) ({engines_own(node.ENGINE_GPU_INFO)})"
    active = promql(f"""
        max by (instance, dp_rank, node) (
          {records.ENGINE_GPU}
          * on (uuid) group_left () max by (uuid) (avg_over_time({records.GPU_ACTIVE}{span}))
        )
    """)
    both = "on (instance, dp_rank, node)"
    return (
        Record(records.ENGINE_GPU, info),
        Record(records.CORE_BINDING, f"{busy}\n/ ({wall} > 0)"),
        Record(records.CORE_RUNQUEUE, f"{waited}\n/ ({wall} > 0)"),
        Record(records.CORE_OTHERS, f"clamp_min(({on_cpus} - {busy}) / {cpus}, 0)"),
        Record(records.CORE_GPU_ACTIVE, active),
        # At least this share of time one worked while the other did not, however the two overlap.
        Record(records.GPU_WAITS, f"clamp_min({records.CORE_BINDING} - {both} {records.CORE_GPU_ACTIVE}, 0)"),
        Record(records.CPU_WAITS, f"clamp_min({records.CORE_GPU_ACTIVE} - {both} {records.CORE_BINDING}, 0)"),
    )


def tenant_records(spec: Spec) -> tuple[Record, ...]:
    """Return how far tenants are held back by their own limits."""
    limits = spec.node.alerts
    by = "tenant, cgroup, node"
    throttled, stalled = window(limits.cpu_throttled.window), window(limits.memory_pressure.window)
    pressure = f'{node.CGROUP_PRESSURE_SECONDS_TOTAL}{{resource="memory",share="some"}}'
    return (
        Record(
            records.TENANT_THROTTLED,
            f"max by ({by}) (rate({node.CGROUP_CPU_THROTTLED_PERIODS_TOTAL}{throttled}))\n"
            f"/ (max by ({by}) (rate({node.CGROUP_CPU_PERIODS_TOTAL}{throttled})) > 0)",
        ),
        Record(records.TENANT_MEMORY_STALLED, f"max by ({by}) (rate({pressure}{stalled}))"),
    )
