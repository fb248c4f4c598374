#!/usr/bin/env bash
# Makes .venv in the current folder with the pinned packages: `make venv`, CI and the image all run this.
# Usage: deploy/install.sh [PYTHON] [EXTRAS]
set -euo pipefail
python=${1:-python3.11}
extras=${2:-all}
command -v "$python" >/dev/null || {
  echo "no $python on PATH; install Python 3.11 or newer, or: make PYTHON=python3" >&2
  exit 1
}
"$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[$extras]"
