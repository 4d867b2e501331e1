#!/usr/bin/env bash
# The same as ../pipeline.sh, for those who look for it here.
set -u

file=${BASH_SOURCE[0]}
while [ -h "$file" ]; do
    target=$(readlink "$file")
    case $target in
        /*) file=$target ;;
        *) file=$(dirname "$file")/$target ;;
    esac
done
exec bash "$(dirname "$file")/../pipeline.sh" "$@"
