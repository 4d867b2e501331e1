#!/usr/bin/env bash
# Builds the wheel and the source archive of the program into dist/ (or the folder $1).
set -eu

folder=$(dirname "${BASH_SOURCE[0]}")
PIPELINE_ROOT=$(CDPATH='' cd -P -- "$folder/.." && pwd -P)
# shellcheck source=devops/venv.sh
. "$PIPELINE_ROOT/devops/venv.sh"

ensure_venv
ensure_tests
out=$(mkdir -p "${1:-$PIPELINE_ROOT/dist}" && CDPATH='' cd -P -- "${1:-$PIPELINE_ROOT/dist}" && pwd -P)
cd "$PIPELINE_ROOT"
"$VENV/bin/python" -m uv build --quiet --python "$VENV/bin/python" --out-dir "$out"
say "Built: $(echo "$out"/*.whl "$out"/*.tar.gz)"
