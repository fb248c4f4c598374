"""slo.yaml -> what Grafana needs to find Prometheus and the dashboards at its first start."""

from dashboards.style import PROMETHEUS_UID, Json
from slo.spec import Spec

JAEGER_UID = "jaeger"
LOKI_UID = "loki"
JAEGER_URL = "http://jaeger:16686"
LOKI_URL = "http://loki:3100"
PROMETHEUS_URL = "http://prometheus:9090"
DASHBOARD_FOLDER = "/etc/grafana/dashboards/inferwatch"


def datasource(spec: Spec) -> Json:
    """The Prometheus data source: a fixed uid, and the real scrape interval so that $__rate_interval is right."""
    return {
        "apiVersion": 1,
        "prune": True,
        "datasources": [
            {
                "name": "Prometheus",
                "uid": PROMETHEUS_UID,
                "type": "prometheus",
                "access": "proxy",
                "url": PROMETHEUS_URL,
                "isDefault": True,
                "editable": False,
                "jsonData": {
                    "httpMethod": "POST",
                    "timeInterval": f"{spec.intervals.scrape_seconds}s",
                    "prometheusType": "Prometheus",
                    "incrementalQuerying": False,
                    # A dot on a heatmap cell opens the trace that was measured.
                    "exemplarTraceIdDestinations": [{"name": "trace_id", "datasourceUid": JAEGER_UID}],
                },
            },
            _jaeger(),
            _loki(),
        ],
    }


def _jaeger() -> Json:
    """Traces; from a span to the log lines of the same trace."""
    return {
        "name": "Jaeger",
        "uid": JAEGER_UID,
        "type": "jaeger",
        "access": "proxy",
        "url": JAEGER_URL,
        "editable": False,
        "jsonData": {
            "tracesToLogsV2": {
                "datasourceUid": LOKI_UID,
                "spanStartTimeShift": "-1m",
                "spanEndTimeShift": "1m",
                "filterByTraceID": True,
                "tags": [{"key": "service.name", "value": "service_name"}],
            },
            "nodeGraph": {"enabled": True},
        },
    }


def _loki() -> Json:
    """Logs; the trace id of a line, which OTLP keeps beside it, opens its trace."""
    return {
        "name": "Loki",
        "uid": LOKI_UID,
        "type": "loki",
        "access": "proxy",
        "url": LOKI_URL,
        "editable": False,
        "jsonData": {
            "derivedFields": [
                {
                    "name": "trace_id",
                    "matcherType": "label",
                    "matcherRegex": "trace_id",
                    # Grafana's provisioning reads $name as a variable; two of them are one.
                    "url": "$${__value.raw}",
                    "datasourceUid": JAEGER_UID,
                }
            ]
        },
    }


def dashboard_provider() -> Json:
    """Dashboards are read from files and cannot be changed in the browser: the files are the truth."""
    return {
        "apiVersion": 1,
        "providers": [
            {
                "name": "inferwatch",
                "folder": "Inferwatch",
                "type": "file",
                "allowUiUpdates": False,
                "disableDeletion": True,
                "updateIntervalSeconds": 30,
                "options": {"path": DASHBOARD_FOLDER, "foldersFromFilesStructure": False},
            }
        ],
    }
