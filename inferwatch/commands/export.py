"""`inferwatch export k8s|rules`: the spec -> manifests, or files for a Prometheus of one's own."""

from pathlib import Path

import click

from inferwatch.commands.options import settings_of
from inferwatch.stack import selection
from slo import spec as slo_spec
from slo.spec import Spec

_OUT = click.option("--out", type=click.Path(file_okay=False, path_type=Path), required=True, help="Folder.")
_ENVIRONMENT = click.option("--environment", help="An environment of slo.yaml.  [default: production]")


@click.group("export")
def command() -> None:
    """Write Kubernetes manifests, or rules for your own stack."""


@command.command("k8s")
@_OUT
@click.option("--image", required=True, help="Our image as your cluster pulls it.")
@click.option(
    "--engine", "engines", multiple=True, metavar="URL", help="An engine with a fixed name; repeat."
)
@click.option("--pods", metavar="KEY=VALUE", help="Label of engine pods that come and go.")
@click.option("--pods-namespace", default="default", show_default=True)
@click.option("--pods-port", type=click.IntRange(1, 65535), default=8000, show_default=True)
@click.option("--pods-cidr", help="Addresses of pods, for the exporter's allow-list.")
@click.option("--direct", is_flag=True, help="Scrape the pods themselves, without the engine exporter.")
@click.option("--service", help="An id in slo.yaml.  [default: its first]")
@click.option("--namespace", default="inferwatch", show_default=True)
@click.option(
    "--monitoring-namespace", default="monitoring", show_default=True, help="Where Prometheus runs."
)
@click.option(
    "--selector",
    "selectors",
    multiple=True,
    default=("release=prometheus",),
    show_default=True,
    help="Label by which your Prometheus picks rules and monitors; repeat.",
)
@_ENVIRONMENT
def k8s(
    out: Path,
    image: str,
    engines: tuple[str, ...],
    pods: str | None,
    pods_namespace: str,
    pods_port: int,
    pods_cidr: str | None,
    direct: bool,
    service: str | None,
    namespace: str,
    monitoring_namespace: str,
    selectors: tuple[str, ...],
    environment: str | None,
) -> None:
    """Write manifests for a cluster with the Prometheus operator; apply them with `kubectl apply -k DIR`."""
    from inferwatch.export import k8s as export
    from inferwatch.export import options

    settings = settings_of(None)
    spec = slo_spec.load(settings.spec_path, environment)
    cluster = options.Cluster(
        image=options.require_image(image),
        namespace=options.require_name(namespace, "--namespace"),
        monitoring_namespace=options.require_name(monitoring_namespace, "--monitoring-namespace"),
        service=service or spec.services[0].id,
        engines=selection.base_urls(engines),
        pods=options.parse_pods(pods, pods_namespace, pods_port, pods_cidr) if pods else None,
        direct=direct,
        selectors=dict(options.parse_label(text, "--selector") for text in selectors),
    )
    text = slo_spec.text(settings.spec_path, environment)
    files = export.manifests(spec, text, settings.root / "dashboards" / "json", cluster)
    for path in export.write(files, cluster, out):
        click.echo(path)
    _warn_of_links(spec)


@command.command("rules")
@_OUT
@_ENVIRONMENT
def rules(out: Path, environment: str | None) -> None:
    """Write rule files and alertmanager.yml of an environment, for a Prometheus or vmalert of your own."""
    from inferwatch.export import own

    spec = slo_spec.load(settings_of(None).spec_path, environment)
    for path in own.write(spec, out):
        click.echo(path)
    _warn_of_links(spec)


def _warn_of_links(spec: Spec) -> None:
    """Say on stderr which links of the notifications nobody else can open."""
    links = spec.links
    for key, base, is_local in (
        ("dashboard_base", links.dashboard_base, links.dashboards_are_local),
        ("runbook_base", links.runbook_base, links.runbooks_are_local),
    ):
        if is_local:
            click.echo(
                f"slo.yaml: links.{key} is {base}: notifications will link where nobody else gets", err=True
            )
