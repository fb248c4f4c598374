"""Pages of the documentation -> the commands in their code."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "CONTRIBUTING.md", *sorted(f"docs/{p.name}" for p in (ROOT / "docs").glob("*.md")))
PROGRAMS = ("make", "inferwatch", "docker", "kubectl", "curl", "python")
_VARIABLES = re.compile(r"^(?:[A-Z_]+=\S+ +)+")


def commands(page: str) -> list[str]:
    """Commands in indented and fenced code, without comments, variables in front, and .venv/bin/."""
    found, fenced = [], False
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            text = _VARIABLES.sub("", line.strip()).removeprefix(".venv/bin/")
            text = re.sub(r"\s{2,}#.*$", "", text).strip()
            if text.split(" ")[0] in PROGRAMS:
                found.append(text)
    return found
