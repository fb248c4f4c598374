"""What binds a GPU: compute, memory, neither or nothing to do, by the roofline in shares of each roof.

The rule, over the means since the last scrape:
  compute = the busiest arithmetic pipe (tensor, fp64, fp32, fp16, integer), memory = DRAM bandwidth,
  each as a share of the chip's peak; their ratio is the work done per byte moved, 1 at the ridge.
  idle    when SM activity, compute and memory all lie under bound.idle_below_ratio;
  compute when compute >= bound.saturated_from_ratio and compute >= memory;
  memory  when memory  >= bound.saturated_from_ratio and memory > compute;
  other   else: kernels run and neither roof is near (launch- or host-bound, small batches, waiting).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exporters.node.gpus import Gpu
from exporters.node.samples import Sample
from slo.names import node as names
from slo.node import Bound

_PIPES = ("fp64", "fp32", "fp16", "integer")
_LEAST_TRAFFIC = 0.001  # under a thousandth of the bandwidth a ratio per byte says nothing


@dataclass(frozen=True)
class Verdict:
    """`kind` is one of BOUND_KINDS; `work_per_byte` is None while next to nothing is moved."""

    kind: str
    work_per_byte: float | None


def judge(means: Mapping[str, float], bound: Bound) -> Verdict | None:
    """Means of the GPM ratios -> what binds; None when SM, tensor or DRAM were not measured."""
    sm = means.get(names.GPU_SM_ACTIVE_RATIO)
    tensor = means.get(names.GPU_TENSOR_ACTIVE_RATIO)
    memory = means.get(names.GPU_DRAM_BANDWIDTH_RATIO)
    if sm is None or tensor is None or memory is None:
        return None
    compute = max(tensor, *(means.get(pipe, 0.0) for pipe in _PIPES))
    work = compute / memory if memory >= _LEAST_TRAFFIC else None
    if max(sm, compute, memory) < bound.idle_below_ratio:
        return Verdict(names.BOUND_IDLE, work)
    if max(compute, memory) < bound.saturated_from_ratio:
        return Verdict(names.BOUND_OTHER, work)
    return Verdict(names.BOUND_COMPUTE if compute >= memory else names.BOUND_MEMORY, work)


def samples(gpu: Gpu, means: Mapping[str, float], bound: Bound) -> Iterator[Sample]:
    """One series a kind, 1 for the one that holds; nothing where GPM does not measure."""
    verdict = judge(means, bound)
    if verdict is None:
        return
    for kind in names.BOUND_KINDS:
        yield gpu.sample(names.GPU_BOUND, float(kind == verdict.kind), kind=kind)
    if verdict.work_per_byte is not None:
        yield gpu.sample(names.GPU_WORK_PER_BYTE_RATIO, verdict.work_per_byte)
