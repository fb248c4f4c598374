"""A GPU reading by whoever measured it -> one expression with our labels: ours, else dcgm-exporter's,
else nvidia_gpu_exporter's. A GPU that two of them see is taken once.
"""

from alerts.promql import promql

GPU = "instance, uuid, gpu, gpu_model, pci_bus_id"


def ours(expression: str) -> str:
    """An expression over the node agent's series."""
    return f"max by ({GPU}) ({expression})"


def dcgm(expression: str) -> str:
    """An expression over dcgm-exporter's series (label UUID, or uuid by its old namespace).

    Select with GPU_I_ID="" where a MIG instance's value would stand for the whole GPU.
    """
    return promql(f"""
        label_replace(label_replace(
        max by (instance, UUID, uuid, gpu, modelName, pci_bus_id) ({expression}),
        "uuid", "$1", "UUID", "(.+)"), "gpu_model", "$1", "modelName", "(.+)")
    """)


def smi(expression: str) -> str:
    """An expression over nvidia_gpu_exporter's series; it writes UUIDs without "GPU-".

    Around an upgrade two identity series of a GPU may stand side by side: the newest one is taken.
    """
    return promql(f"""
        label_replace(label_replace(label_replace(
        ({expression}) * on (instance, uuid) group_left (name, index, pci_bus_id)
        group by (instance, uuid, name, index, pci_bus_id)
        (topk by (instance, uuid) (1, timestamp(nvidia_smi_gpu_info))),
        "gpu_model", "$1", "name", "(.+)"), "gpu", "$1", "index", "(.+)"),
        "uuid", "GPU-$1", "uuid", "([0-9a-f]{{8}}-.+)")
    """)


def first_of(*sources: str) -> str:
    """The first source that has the GPU, by uuid, with our labels only."""
    parts = [f"max by ({GPU}) (\n{source}\n)" for source in sources]
    return promql("\nor on (uuid)\n".join(parts))


_DCGM_EVENTS = (
    '(DCGM_FI_DEV_CLOCKS_EVENT_REASONS{GPU_I_ID=""} or DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{GPU_I_ID=""})'
)


def dcgm_bits(*bits: int) -> str:
    """1 where any of these bits of the clock-event mask is set, else 0."""
    terms = [f"floor({_DCGM_EVENTS} / {bit}) % 2" for bit in bits]
    return f"clamp_max({' + '.join(terms)}, 1)"


def smi_reasons(*reasons: str) -> str:
    """1 where any of these reasons holds, under the newer family name or the older."""
    names = "|".join(
        f"nvidia_smi_clocks_{family}_reasons_{reason}"
        for reason in reasons
        for family in ("event", "throttle")
    )
    return f'max by (instance, uuid) ({{__name__=~"{names}"}})'
