"""A spec -> rule files, Alertmanager's configuration and the flags for a Prometheus of one's own."""

from pathlib import Path, PurePath

from inferwatch.stack import config
from slo.spec import Spec


def write(spec: Spec, out: Path) -> list[Path]:
    """Write everything into *out* and return the paths."""
    from alerts import render

    texts = {
        f"rules/{PurePath(path).name}" if path.startswith(render.RULES) else PurePath(path).name: text
        for path, text in render.files(spec).items()
        if path.startswith("alerts/")
    }
    texts["flags.txt"] = f"--storage.tsdb.retention.time={spec.retention_days:g}d\n"
    for name, text in texts.items():
        config.write_text(out / name, text)
    return [out / name for name in sorted(texts)]
