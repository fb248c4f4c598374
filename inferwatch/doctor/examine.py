"""URLs -> every check on every engine, as findings; the literal lists of checks."""

from collections.abc import Callable, Sequence

from inferwatch.doctor import launch, load_checks, settings_checks
from inferwatch.doctor.evidence import Client, Evidence, gather
from inferwatch.doctor.finding import Finding
from inferwatch.doctor.launch import Inputs
from inferwatch.stack.errors import StackError
from slo.spec import Spec

SETTINGS: tuple[Callable[[Evidence], Finding], ...] = (
    settings_checks.prefix_caching,
    settings_checks.admission_limit,
    settings_checks.adapters,
    settings_checks.several_processes,
    settings_checks.readiness,
)
LOAD: tuple[Callable[[Evidence, Spec], Finding], ...] = (
    load_checks.kv_size,
    load_checks.batch_limit,
    load_checks.bucket_floor,
)
LAUNCH: tuple[Callable[[Evidence, Inputs], Finding], ...] = (
    launch.weights,
    launch.memory,
    launch.health_endpoints,
)
LAUNCH_ASKING: tuple[Callable[[Evidence, Inputs, Client], Finding], ...] = (launch.tokenizer, launch.trace)


def examine(
    urls: Sequence[str], spec: Spec, inputs: Inputs, seconds: float, bearer_token: str | None = None
) -> list[Finding]:
    """
    Look at each engine for *seconds* and return all findings.

    Sends a handful of requests for one token, no load. Raises StackError for an engine that does not answer.
    """
    found: list[Finding] = []
    seen: list[Evidence] = []
    for url in urls:
        client = Client(url, bearer_token)
        try:
            evidence = gather(client, seconds)
            if not any(evidence.health.values()) and not evidence.pages:
                raise StackError(f"{url} does not answer ({evidence.token.text[:160]}); is it running there?")
            seen.append(evidence)
            found += [check(evidence) for check in SETTINGS]
            found += [check(evidence, spec) for check in LOAD]
            found += [check(evidence, inputs) for check in LAUNCH]
            found += [check(evidence, inputs, client) for check in LAUNCH_ASKING]
        finally:
            client.close()
    return [*found, settings_checks.one_version(seen)]
