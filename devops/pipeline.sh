#!/usr/bin/env bash
# The same as ../pipeline.sh, for those who look for it here.
set -u

# Where PATH is empty or broken, what every system has is looked for at its usual place.
for tool in readlink dirname; do
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
exec "$BASH" "$(dirname "$file")/../pipeline.sh" "$@"
