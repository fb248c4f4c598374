"""The one client of Prometheus and Alertmanager: `Prometheus(url).query("up")`."""

from inferwatch.promapi.alertmanager import Alertmanager
from inferwatch.promapi.errors import PromError
from inferwatch.promapi.model import Alert, Rule, RuleGroup, Sample, Series, Target
from inferwatch.promapi.prometheus import Prometheus

__all__ = [
    "Alert",
    "Alertmanager",
    "PromError",
    "Prometheus",
    "Rule",
    "RuleGroup",
    "Sample",
    "Series",
    "Target",
]
