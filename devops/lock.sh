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

# Pins the requirements in the file $1 ("-": in what comes in) into $2.
lock() {
    local from=$1 output=$2
    shift 2
    "$VENV/bin/python" -m uv pip compile "$from" --universal --python-version 3.11 --generate-hashes \
        --no-annotate --no-emit-index-url --no-emit-find-links \
        --custom-compile-command devops/lock.sh --quiet --output-file "$output" "$@"
}

# Prints the requirements that pyproject.toml lists under the keys $@, a line each.
declared() {
    "$VENV/bin/python" -c 'import sys, tomllib
with open("pyproject.toml", "rb") as file:
    found = tomllib.load(file)
for key in sys.argv[1:]:
    found = found[key]
print(*found, sep="\n")' "$@"
}

lock pyproject.toml devops/requirements/core.txt "$@"
# The tests must run on exactly what users run on: the core pins bind the test lock. Every extra is tested.
lock pyproject.toml devops/requirements/test.txt --group test --all-extras --constraint devops/requirements/core.txt "$@"
# So is each extra: its packages are those of the tests.
for extra in bedrock dask export langgraph objects openai otel plot postgres ui vertex; do
    declared project optional-dependencies "$extra" |
        lock - "devops/requirements/$extra.txt" --constraint devops/requirements/test.txt "$@"
done
# What `devops/bench.sh --peers` compares with stands in an environment of its own and is bound to nothing.
declared dependency-groups peers | lock - tests/benchmarks/peers/requirements.txt "$@"
