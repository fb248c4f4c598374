"""Each check of docker-compose.yml sees the fault that it is for, put into the real file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from inferwatch.compose import dockerfile, hardening, images, model, render, volumes, wiring
from inferwatch.compose.model import Project
from inferwatch.stack.errors import StackError

ROOT = Path(__file__).resolve().parents[2]
KNOWN = images.known(ROOT / "deploy" / "Dockerfile")
Change = Callable[[dict[str, Any]], object]


def all_faults(project: Project) -> list[str]:
    """What the checks that need nothing but files say."""
    return [
        *hardening.faults(project),
        *hardening.image_faults(project),
        *volumes.faults(project, KNOWN),
        *wiring.port_faults(project),
        *wiring.dependency_faults(project),
        *wiring.health_faults(project, KNOWN),
        *wiring.host_faults(project, wiring.read_texts(project)),
    ]


def changed(change: Change, tmp_path: Path) -> Project:
    """The shipped file with *change* made to its services, in a checkout that has the same files."""
    raw = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    change(raw["services"])
    for name in ("deploy", "alerts", "dashboards"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "docker-compose.yml").write_text(yaml.safe_dump(raw, sort_keys=False))
    return model.load(tmp_path / "docker-compose.yml", model.read_env(ROOT / ".env"))


def test_the_shipped_file_has_no_fault() -> None:
    """docker-compose.yml as committed."""
    assert all_faults(model.load(ROOT / "docker-compose.yml")) == []
    assert dockerfile.faults(ROOT, model.load(ROOT / "docker-compose.yml")) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda s: s["prometheus"].update(user="0:0"), "prometheus: user 0:0"),
        (lambda s: s["grafana"].pop("user"), "grafana: user left to the image"),
        (lambda s: s["receiver"].update(read_only=False), "receiver: its root can be written"),
        (lambda s: s["exporter-engine"].update(cap_add=["SYS_PTRACE"]), "exporter-engine: keeps capabilities"),
        (lambda s: s["exporter-engine"].update(security_opt=[]), "exporter-engine: may gain privileges"),
        (lambda s: s["grafana"].pop("mem_limit"), "grafana: has no memory limit"),
        (lambda s: s["exporter-drift"].update(ports=["9491:9491"]), "exporter-drift: port 9491 on every address"),
        (
            lambda s: s["exporter-drift"].update(environment={"UPSTREAM": "http://embedder:8000"}),
            "embedder:8000: no service has that name",
        ),
        (lambda s: s["grafana"].pop("logging"), "grafana: its logs grow without end"),
        (lambda s: s["receiver"].update(pid="host"), "receiver: shares a namespace with the host"),
        (lambda s: s["exporter-node"].pop("pid"), "exporter-node: pid is listed as an exception and is none"),
        (
            lambda s: s["receiver"]["volumes"].append("/var/run/docker.sock:/var/run/docker.sock:ro"),
            "receiver: mounts the engine's socket",
        ),
        (lambda s: s["grafana"].update(image="grafana/grafana:latest"), "grafana: image 'grafana/grafana:latest'"),
        (lambda s: s["grafana"].update(image="grafana/grafana"), "grafana: image 'grafana/grafana'; pin a version"),
        (lambda s: s["grafana"].update(ports=["3000:3000"]), "grafana: port 3000 on every address"),
        (lambda s: s["grafana"].update(ports=["127.0.0.1:9090:3000"]), "grafana: port 9090 is prometheus's already"),
        (lambda s: s["grafana"].update(ports=["127.0.0.1:3000:3001"]), "grafana: publishes 3001, but listens on [3000]"),
        (lambda s: s["receiver"].pop("healthcheck"), "alertmanager: waits for receiver to be healthy, which has no"),
        (lambda s: s["init"].update(restart="always"), "waits for init to end, which is started again and again"),
        (lambda s: s["receiver"].update(depends_on=["prometheus"]), "prometheus: waits for itself, over others"),
        (lambda s: s["receiver"].update(depends_on=["nobody"]), "receiver: waits for nobody, which is no service"),
        (
            lambda s: s["prometheus"].update(depends_on={"engine-gpu": {"condition": "service_started"}}),
            "prometheus: needs engine-gpu, which only profile gpu starts",
        ),
        (
            lambda s: s["alertmanager"]["healthcheck"].update(test=["CMD", "curl", "http://127.0.0.1:9093"]),
            "alertmanager: prom/alertmanager has no curl",
        ),
        (
            lambda s: s["receiver"]["healthcheck"].update(test=["CMD", "python", "-m", "x", "http://127.0.0.1:1095/"]),
            "receiver: its health check asks port 1095",
        ),
        (
            lambda s: s["exporter-analysis"]["command"].__setitem__(-3, "http://prometheus:9091"),
            "prometheus:9091: prometheus listens on [9090]",
        ),
        (
            lambda s: s["prometheus"]["volumes"].append("./deploy/compose/missing.yml:/etc/missing.yml:ro"),
            "deploy/compose/missing.yml does not exist",
        ),
        (lambda s: s["receiver"]["volumes"].append("other:/x"), "receiver: volume other is not declared"),
    ],
)  # fmt: skip
def test_a_fault_is_seen(change: Change, fault: str, tmp_path: Path) -> None:
    """The check names the service and what is wrong with it."""
    assert [f for f in all_faults(changed(change, tmp_path)) if fault in f]


def test_a_variable_without_value_names_itself() -> None:
    """An empty image tag would be pulled as `latest`."""
    with pytest.raises(StackError, match=r"\$\{PYTHON_VERSION\} has no value; add PYTHON_VERSION to \.env"):
        model.load(ROOT / "docker-compose.yml", {})


def test_the_image_holds_what_it_starts(tmp_path: Path) -> None:
    """A package that is not copied, or not let through by .dockerignore, is named."""
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    for name in (
        "slo",
        "exporters",
        "alerts",
        "loadtests",
        "inferwatch",
        "sim",
        "deploy/install.sh",
        "Makefile",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("pyproject.toml", "constraints.txt", "README.md", "LICENSE", "slo.yaml", ".env"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "deploy" / "Dockerfile").write_text(text.replace("COPY sim sim\n", "COPY nothing nothing\n"))
    (tmp_path / ".dockerignore").write_text((ROOT / ".dockerignore").read_text().replace("!alerts\n", ""))
    faults = dockerfile.faults(tmp_path, model.load(ROOT / "docker-compose.yml"))

    assert "deploy/Dockerfile: COPY nothing: not in the checkout" in faults
    assert "deploy/Dockerfile: COPY alerts: left out by .dockerignore" in faults
    assert "deploy/Dockerfile: sim is started, but the image does not hold it" in faults


def test_prometheus_in_compose_differs_from_the_native_one_in_places_only() -> None:
    """Same jobs and intervals, but for load runs on the host; names instead of loopback ports, 90 days kept."""
    from inferwatch.stack import config
    from inferwatch.stack.settings import default_settings
    from slo import spec as slo_spec

    spec = slo_spec.load()
    here = default_settings(environ={"HOME": "/root", "INFERWATCH_ENVIRONMENT": "production"})
    native, ours = config.prometheus_config(spec, here, traced=True), render.prometheus_config(spec)
    jobs = [[job["job_name"] for job in one["scrape_configs"]] for one in (native, ours)]

    assert native["global"] == ours["global"]
    assert set(jobs[1]) == {*jobs[0], "node"} - {"llm-load"}
    assert ours["storage"] == {**native["storage"], "tsdb": {"retention": {"time": "90d"}}}
    assert "127.0.0.1" not in yaml.safe_dump(ours)


@pytest.mark.parametrize(
    ("service", "url"), [("prometheus", "http://127.0.0.1:9090"), ("alertmanager", "http://127.0.0.1:9093")]
)
def test_notifications_name_the_published_address(service: str, url: str) -> None:
    """Without it, links back to the source lead to a container's id, which no browser resolves."""
    project = model.load(ROOT / "docker-compose.yml", model.read_env(ROOT / ".env"))

    (found,) = [one for one in project.services if one.name == service]

    assert f"--web.external-url={url}" in found.words
