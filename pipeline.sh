#!/usr/bin/env bash
# Runs the pipeline from any folder; the first start makes the .venv beside this file.
set -u

file=${BASH_SOURCE[0]}
while [ -h "$file" ]; do
    target=$(readlink "$file")
    case $target in
        /*) file=$target ;;
        *) file=$(dirname "$file")/$target ;;
    esac
done
case $file in
    */*) folder=${file%/*} ;;
    *) folder=. ;;
esac
PIPELINE_ROOT=$(CDPATH='' cd -P -- "${folder:-/}" && pwd -P) || exit 2
export PIPELINE_ROOT

# shellcheck source=devops/venv.sh
. "$PIPELINE_ROOT/devops/venv.sh"
ensure_venv

# -P: a `pipeline` or `click` folder where the caller stands is not ours.
unset PYTHONHOME
export PYTHONPATH="$PIPELINE_ROOT${PYTHONPATH:+:$PYTHONPATH}"
exec "$VENV/bin/python" -P -m pipeline "$@"
