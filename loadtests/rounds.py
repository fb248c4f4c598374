"""Two servers and a plan -> pairs of runs, candidate and baseline in turn, for the gate to compare."""

from collections.abc import Callable
from pathlib import Path

from loadtests import identity
from loadtests.plan import LoadPlan
from loadtests.run import LoadError, LoadResult, read_result, run_load

Told = Callable[[Path, int], None]


def run_rounds(
    plan: LoadPlan,
    folders: dict[Path, str],
    pairs: int,
    *,
    first: int = 0,
    labels: dict[str, str] | None = None,
    told: Told | None = None,
) -> None:
    """Run *plan* *pairs* times, from round *first*, against each server in turn, turned round in every other pair.

    *folders* maps a folder to the server's base URL; round n of every folder has the same random seed, so the
    requests are the same. What drifts on the machine meanwhile meets all servers alike. *told* hears of each run (its folder and
    round) before it starts. Raises LoadError when a client failed or was ended before its plan was over.
    """
    plans = {folder: plan.model_copy(update={"base_url": url.rstrip("/")}) for folder, url in folders.items()}
    identities = {folder: identity.collect(one, labels) for folder, one in plans.items()}
    for number in range(first, first + pairs):
        turn = list(plans) if number % 2 == 0 else list(reversed(plans))
        for folder in turn:
            if told is not None:
                told(folder, number)
            seeded = plans[folder].model_copy(update={"random_seed": plan.random_seed + number})
            where = folder / f"round-{number:02d}"
            identity.save(identities[folder], where)
            if run_load(seeded, where).stopped:
                raise LoadError(
                    f"{where}: the load client was ended before its plan was over; run the pairs again"
                )


def read_rounds(folder: Path) -> list[LoadResult]:
    """The rounds in *folder* in order, or the one run that it is; raises LoadError when it holds none."""
    if (folder / "run.json").exists():
        return [read_result(folder)]
    rounds = sorted(folder.glob("round-*"))
    if not rounds:
        raise LoadError(f"{folder}: holds neither a load run nor rounds of one")
    return [read_result(one) for one in rounds]
