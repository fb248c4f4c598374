"""slo.yaml -> what Grafana needs to find Prometheus and the dashboards at its first start."""

from dashboards.style import PROMETHEUS_UID, Json
from slo.spec import Spec

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
                },
            }
        ],
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
