"""One rule for every run: a test that did not run is not a pass."""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which any test was skipped or expected to fail."""
    if _not_run(session.config) and session.exitstatus in (
        pytest.ExitCode.OK,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(config: pytest.Config) -> None:
    """Say which tests were not run."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    for nodeid in _not_run(config):
        reporter.write_line(f"NOT RUN, so this run fails: {nodeid}", red=True)


def _not_run(config: pytest.Config) -> list[str]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    return [
        report.nodeid
        for kind in ("skipped", "xfailed", "xpassed")
        for report in (reporter.stats.get(kind, []) if reporter else [])
    ]
