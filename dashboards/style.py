"""The house style: what every dashboard shares, and grafanalib's old defaults made modern.

grafanalib 0.7.1 writes for Grafana 6 to 8. Here its dashboards, targets and panels are turned into
classic JSON of schema version 41, which Grafana 11, 12 and 13 load without a migration.
"""

from typing import Any

import attr
from grafanalib.core import (
    Annotations,
    Dashboard,
    DashboardLink,
    Panel,
    Target,
    Template,
    Templating,
    Time,
)

Json = dict[str, Any]

# grafanalib has no types: seen through attr.s itself, mypy would know only the fields added here.
_attrs: Any = attr.s

SCHEMA_VERSION = 41
TAG = "inferwatch"
PROMETHEUS_UID = "prometheus"
DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}

# Okabe and Ito's palette: told apart with any colour vision, on dark and on light ground.
BLUE, SKY, GREEN, YELLOW = "#0072B2", "#56B4E9", "#009E73", "#F0E442"
ORANGE, RED, PURPLE, GREY = "#E69F00", "#D55E00", "#CC79A7", "#8C8C8C"
SERIES = (SKY, ORANGE, GREEN, PURPLE, BLUE, RED, YELLOW, GREY)


@_attrs
class Query(Target):  # grafanalib's own emits intervalFactor, step and null keys
    """A PromQL query; *exemplar* asks for trace links, *instant* for the last value only."""

    exemplar: bool = attr.ib(default=False)

    def to_json_data(self) -> Json:
        """The target as Grafana 11 to 13 store it."""
        return {
            "datasource": DATASOURCE,
            "editorMode": "code",
            "exemplar": self.exemplar,
            "expr": self.expr,
            "format": self.format,
            "instant": self.instant,
            "legendFormat": self.legendFormat,
            "range": not self.instant,
            "refId": self.refId,
            **({"interval": self.interval} if self.interval else {}),
        }


@_attrs
class ModernPanel(Panel):  # grafanalib has no place for options, field configuration and their nesting
    """One panel of any type, with the options and field configuration that type takes today."""

    kind: str = attr.ib(default="timeseries")
    options: Json = attr.ib(factory=dict)
    field_config: Json = attr.ib(factory=dict)
    width: int = attr.ib(default=12)

    def to_json_data(self) -> Json:
        """The panel as Grafana 11 to 13 store it."""
        panel: Json = {
            "id": self.id,
            "type": self.kind,
            "title": self.title,
            "gridPos": self.gridPos,
            "datasource": DATASOURCE,
            "description": self.description,
            "fieldConfig": self.field_config,
            "options": self.options,
            "targets": [query.to_json_data() for query in self.targets],
        }
        if self.transformations:
            panel["transformations"] = self.transformations
        if self.interval:
            panel["interval"] = self.interval
        return panel


@_attrs
class Section(Panel):  # RowPanel would add keys of the panel types it is not
    """The heading over a band of panels."""

    def to_json_data(self) -> Json:
        """A row that is open and holds nothing itself."""
        return {
            "id": self.id,
            "type": "row",
            "title": self.title,
            "collapsed": False,
            "gridPos": self.gridPos,
            "panels": [],
        }


def query(expr: str, legend: str = "", **more: Any) -> Query:
    """A range query with its legend; refIds are given when the panel is built."""
    return Query(expr=expr, legendFormat=legend or "__auto", **more)


def variable(name: str, label: str, labels_of: str, hide: int = 0) -> Template:
    """A multi-value variable over one label; "All" is `.*`, so that series without the label stay in."""
    return Template(
        name=name, label=label, query=labels_of, dataSource=DATASOURCE, multi=True, includeAll=True,
        allValue=".*", hide=hide,
    )  # fmt: skip


def _variable_json(template: Template) -> Json:
    if template.type == "datasource":
        return {
            "type": "datasource",
            "name": template.name,
            "label": template.label,
            "query": template.query,
            "current": {"selected": True, "text": "Prometheus", "value": PROMETHEUS_UID},
            "hide": 0,
            "includeAll": False,
            "multi": False,
            "options": [],
            "refresh": 1,
            "regex": "",
        }
    return {
        "type": "query",
        "name": template.name,
        "label": template.label,
        "datasource": DATASOURCE,
        "query": {"qryType": 1, "query": template.query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "allValue": template.allValue,
        "hide": template.hide,
        "includeAll": True,
        "multi": True,
        "options": [],
        "refresh": 2,
        "regex": "",
        "sort": 1,
    }  # fmt: skip


def annotation(name: str, expr: str, colour: str, title: str, text: str, step: str = "30s") -> Json:
    """Events read from Prometheus: one mark wherever *expr* has a sample."""
    return {
        "datasource": DATASOURCE,
        "enable": True,
        "expr": expr,
        "hide": False,
        "iconColor": colour,
        "name": name,
        "step": step,
        "tagKeys": "",
        "textFormat": text,
        "titleFormat": title,
        "useValueForTime": False,
    }


def dashboard(
    *, uid: str, title: str, description: str, panels: list[Panel], variables: list[Template],
    annotations: list[Json], span: str = "now-1h", tags: tuple[str, ...] = (),
) -> Json:  # fmt: skip
    """Build one dashboard: grafanalib holds it together, this function makes its JSON modern."""
    source = Template(name="datasource", label="Data source", query="prometheus", type="datasource")
    built = Dashboard(
        title=title, uid=uid, description=description, panels=panels,
        templating=Templating(list=[source, *variables]), annotations=Annotations(list=annotations),
        time=Time(span, "now"), tags=[TAG, *tags],
        links=[DashboardLink(title="Inferwatch", tags=[TAG], asDropdown=True, includeVars=True, keepTime=True)],
    ).auto_panel_ids()  # fmt: skip
    return modern(built)


def modern(built: Dashboard) -> Json:
    """grafanalib's dashboard -> classic JSON of today, with nothing left of the old defaults."""
    (link,) = built.links
    return {
        "annotations": {"list": built.annotations.list},
        "description": built.description,
        "editable": True,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "links": [{**link.to_json_data(), "icon": "external link", "tooltip": "", "url": ""}],
        "panels": [panel.to_json_data() for panel in built.panels],
        "preload": False,
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "tags": built.tags,
        "templating": {"list": [_variable_json(t) for t in built.templating.list]},
        "time": {"from": built.time.start, "to": built.time.end},
        "timepicker": {"refresh_intervals": ["5s", "10s", "30s", "1m", "5m"]},
        "timezone": "browser",
        "title": built.title,
        "uid": built.uid,
        "version": 1,
    }
