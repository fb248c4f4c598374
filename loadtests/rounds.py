"""Two servers and a plan -> pairs of runs, candidate and baseline in turn, for the gate to compare."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from loadtests import identity
from loadtests.plan import LoadPlan, fresh_nonce
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

    *folders* maps a folder to the server's base URL. Round n sends the same requests to each, and prompts that no
    round before it has sent: a server that was loaded earlier has no more of them in its prefix cache than a fresh
    one. What drifts on the machine meanwhile meets all servers alike. *told* hears of each run (its folder and
    round) before it starts. Raises LoadError for servers that could not be compared after, before anything is sent,
    and for a client that failed or was ended before its plan was over.
    """
    plans = {folder: plan.model_copy(update={"base_url": url.rstrip("/")}) for folder, url in folders.items()}
    identities = {folder: identity.collect(one, labels) for folder, one in plans.items()}
    mute = [one.base_url for folder, one in plans.items() if identity.tells_nothing(identities[folder])]
    if mute and len(folders) > 1:
        raise LoadError(
            f"{mute[0]}: the engine tells no flags (if it answers at all), so the gate would not compare it; say what "
            "it runs on and how it was started with --label KEY=VALUE"
        )
    for number in range(first, first + pairs):
        of_round = {
            "random_seed": plan.random_seed + number,
            "run_nonce": plan.run_nonce or fresh_nonce(),
        }
        turn = list(plans) if number % 2 == 0 else list(reversed(plans))
        for folder in turn:
            if told is not None:
                told(folder, number)
            where = folder / f"round-{number:02d}"
            identity.save(identities[folder], where)
            if run_load(plans[folder].model_copy(update=of_round), where).stopped:
                raise LoadError(
                    f"{where}: the load client was ended before its plan was over; run the pairs again"
                )


def read_rounds(folder: Path) -> list[LoadResult]:
    """The rounds in *folder* in order, or the one run that it is; raises LoadError when it holds none."""
    if (folder / "run.json").exists():
        return [read_result(folder)]
    rounds = sorted(folder.glob("round-*"), key=lambda one: (len(one.name), one.name))
    if not rounds:
        raise LoadError(f"{folder}: holds neither a load run nor rounds of one")
    return [read_result(one) for one in rounds]


def not_in_turn(runs: Sequence[LoadResult], baseline: Sequence[LoadResult]) -> str | None:
    """Why rounds of *runs* and *baseline* are no pairs in time; None when each pair was over before the next began.

    Only rounds that took turns meet what drifts on a machine alike. A stored baseline did not: neither a paired test
    nor its confidence is worth anything with it.
    """
    pairs = list(zip(runs, baseline, strict=False))
    mend = "drift of the machine would count as a loss; measure both in turn with `inferwatch load --against`"
    if len(pairs) < 2:
        return f"one pair of rounds takes no turns: {mend}"
    for number, (before, after) in enumerate(pairwise(pairs), 1):
        if min(run.began_s for run in after) < max(run.ended_s for run in before):
            return f"pair {number + 1} of rounds began before pair {number} was over: {mend}"
    return None
