#!/usr/bin/env bash
# What must hold, in three tiers; works from nothing but a Python 3.11.
#   devops/check.sh            before a commit: ruff, mypy and the short tests
#   devops/check.sh --all      before a change lands: every test, with coverage
#   devops/check.sh --judges   before a release: every test, 200 kills a store, exports judged by other programs
# Further arguments go to pytest.
set -u

folder=$(dirname "${BASH_SOURCE[0]}")
PIPELINE_ROOT=$(CDPATH='' cd -P -- "$folder/.." && pwd -P) || exit 2
# shellcheck source=devops/venv.sh
. "$PIPELINE_ROOT/devops/venv.sh"
cd "$PIPELINE_ROOT" || exit 2

tier=short
case "${1:-}" in
    --all | --judges)
        tier=${1#--}
        shift
        ;;
esac

failed=""
number=0

# Runs one check, named $1, to its end, whatever those before it found.
check() {
    local name=$1
    shift
    number=$((number + 1))
    printf '\n==> [%d/4] %s\n' "$number" "$name"
    "$@" || failed="$failed${failed:+, }$name"
}

ensure_venv
ensure_tests
ensure_npm axe tests/axe
if [ "$tier" = judges ]; then
    ensure_npm judges tests/judges
fi
if [ "$tier" != short ]; then
    ensure_npm pglite tests/servers/pglite
    set -- --cov=pipeline --cov-report=term "$@"
fi
# Tests start this program some thousand times: without bytecode each start would compile it all.
unset PYTHONHOME PYTHONPATH PYTHONDONTWRITEBYTECODE

check "ruff check" "$VENV/bin/python" -m ruff check .
check "ruff format" "$VENV/bin/python" -m ruff format --check .
check "mypy" "$VENV/bin/python" -m mypy
# Long tests wait more than they compute, so four fill two cores; short ones do not.
workers=4
[ "$tier" != short ] || workers=3
check "pytest ($tier)" "$VENV/bin/python" -m pytest -n "$workers" --dist worksteal --tier "$tier" "$@"

if [ -n "$failed" ]; then
    printf '\nFAILED: %s\n' "$failed"
    exit 1
fi
printf '\nAll checks passed.\n'
