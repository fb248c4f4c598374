"""`python -m exporters NAME …` to the exporter of that name, importing only that one."""

import importlib
import sys

# name -> module with `main(argv: list[str]) -> int`, imported only when chosen
SUBCOMMANDS = {
    "engine": "exporters.engine.server",
    "canary": "exporters.canary.server",
    "node": "exporters.node.server",
    "analysis": "exporters.analysis.server",
    "drift": "exporters.drift.server",
}


def main(argv: list[str]) -> int:
    """Run the exporter named first in `argv`; returns its exit status (2: usage)."""
    if not argv or argv[0] not in SUBCOMMANDS:
        got = repr(argv[0]) if argv else "nothing"
        sys.stderr.write(
            f"python -m exporters NAME …: NAME is {got}; write one of {', '.join(SUBCOMMANDS)}\n"
        )
        return 2
    code: int = importlib.import_module(SUBCOMMANDS[argv[0]]).main(argv[1:])
    return code


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
