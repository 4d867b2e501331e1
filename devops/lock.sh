#!/usr/bin/env bash
# Pins what pyproject.toml allows, with the hashes of every platform's files, for Python 3.11 and
# later. Pass --upgrade to take newer releases; without it only what changed moves.
set -eu

folder=$(dirname "${BASH_SOURCE[0]}")
PIPELINE_ROOT=$(CDPATH='' cd -P -- "$folder/.." && pwd -P)
# shellcheck source=devops/venv.sh
. "$PIPELINE_ROOT/devops/venv.sh"
cd "$PIPELINE_ROOT"

ensure_venv
ensure_tests

lock() {
    local output=$1
    shift
    "$VENV/bin/python" -m uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
        --no-annotate --no-emit-index-url --no-emit-find-links \
        --custom-compile-command devops/lock.sh --quiet --output-file "$output" "$@"
}

lock devops/requirements/core.txt "$@"
# The tests must run on exactly what users run on: the core pins bind the test lock. Every extra is tested.
lock devops/requirements/test.txt --group test --all-extras --constraint devops/requirements/core.txt "$@"
