#!/usr/bin/env bash
# Our figures; nothing fails by them. Needs nothing but a Python 3.11.
#   devops/bench.sh [NAME ...]      speed and size of the core, or the named figures of it
#   devops/bench.sh --all           and of stores, the desk, graphs, pacing and caching (some ten minutes)
#   devops/bench.sh --peers [--rounds 3] [--minutes 40] [PEER ...]
#                                   five workloads, in turns with other libraries that make steps durable; they get an
#                                   environment of their own, .venv.peers (about 700 MB)
set -eu

folder=$(dirname "${BASH_SOURCE[0]}")
PIPELINE_ROOT=$(CDPATH='' cd -P -- "$folder/.." && pwd -P)
# shellcheck source=devops/venv.sh
. "$PIPELINE_ROOT/devops/venv.sh"
cd "$PIPELINE_ROOT"
unset PYTHONHOME PYTHONPATH

ensure_venv
ensure_tests
python=$VENV/bin/python

case "${1:-}" in
    --peers)
        shift
        # shellcheck disable=SC2034 # both are read by ensure_venv
        VENV=$PIPELINE_ROOT/.venv.peers CORE_LOCK=$PIPELINE_ROOT/tests/benchmarks/peers/requirements.txt
        unset PIPELINE_VENV
        ensure_venv
        exec "$python" -m tests.benchmarks.peers.compare "$VENV/bin/python" "$@"
        ;;
    --all)
        for name in bench shapes saves sql objects desk pace four_ways; do
            printf '\n==> %s\n' "$name"
            "$python" -m "tests.benchmarks.$name"
        done
        ;;
    *) exec "$python" -m tests.benchmarks.bench "$@" ;;
esac
