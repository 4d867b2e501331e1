#!/usr/bin/env bash
# Runs the pipeline from any folder; the first start makes the .venv beside this file.
set -u

# Where PATH is empty or broken, what every system has is looked for at its usual place.
for tool in readlink dirname cat cksum uname mkdir mv rm; do
    command -v "$tool" >/dev/null 2>&1 || export PATH="${PATH:+$PATH:}/usr/bin:/bin"
    command -v "$tool" >/dev/null 2>&1 || {
        printf 'pipeline.sh needs the command %s, and PATH (%s) does not lead to it.\n' "$tool" "$PATH" >&2
        exit 2
    }
done

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
if [ "${1:-}" = install ]; then
    shift
    install_extras "$@"
    exit
fi
ensure_venv
ensure_extras

# -P: a `pipeline` or `click` folder where the caller stands is not ours.
unset PYTHONHOME
export PYTHONPATH="$PIPELINE_ROOT${PYTHONPATH:+:$PYTHONPATH}"
exec "$VENV/bin/python" -P -m pipeline "$@"
