"""The engines we can read, in the order in which a page is tried against them."""

from exporters.engine import vllm
from exporters.engine.adapter import Adapter

ADAPTERS: tuple[Adapter, ...] = (vllm.ADAPTER,)
BY_NAME = {adapter.name: adapter for adapter in ADAPTERS}
