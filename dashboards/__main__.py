"""`python -m dashboards [--check]`: write the dashboards, or fail when a generated file is stale."""

import argparse
import sys

from dashboards.render import write


def main() -> int:
    """Exit 0 when all is written or fresh, 1 when --check found stale files."""
    parser = argparse.ArgumentParser(prog="python -m dashboards", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only; exit 1 if a file is stale")
    check = parser.parse_args().check
    stale = write(check)
    word = "stale" if check else "wrote"
    sys.stdout.write(
        "".join(f"{word} {path}\n" for path in stale) or "dashboards: all generated files are fresh\n"
    )
    if check and stale:
        sys.stderr.write("run `inferwatch gen` (or python -m dashboards) and commit the result\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
