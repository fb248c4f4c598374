"""MIG: no utilisation of the parent, memory of each instance."""

from typing import Any


def test_instances_instead_of_a_parent_that_seems_idle(drive: Any, case: Any) -> None:
    """A29: two instances of 40 GiB with 30 and 6 in use."""
    shown = drive(case("A29-nvml.json"))
    shown.run()
    scrape = shown.scrape()

    assert scrape.all("llm_gpu_utilisation_ratio") == []
    assert scrape.one("llm_gpu_mig_enabled") == 1
    shares = {
        uuid: scrape.one("llm_gpu_mig_memory_used_bytes", mig_uuid=uuid)
        / scrape.one("llm_gpu_mig_memory_total_bytes", mig_uuid=uuid)
        for uuid in ("MIG-1", "MIG-2")
    }
    assert shares == {"MIG-1": 0.75, "MIG-2": 0.15}
    assert {have["profile"] for have, _ in scrape.all("llm_gpu_mig_memory_used_bytes")} == {"3g.40gb"}
    assert {have["uuid"] for have, _ in scrape.all("llm_gpu_mig_memory_used_bytes")} == {"GPU-mig"}
    assert scrape.one("llm_gpu_memory_unified") == 0
    assert scrape.all("llm_gpu_bound") == []
