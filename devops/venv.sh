# shellcheck shell=bash
# Decides which Python runs the project and makes its virtual environment. Sourced by pipeline.sh
# and devops/check.sh, so that there is one way. Needs PIPELINE_ROOT (absolute), sets VENV.
#
# For bash 3.2 and the tools that both macOS and Linux have: no readlink -f, flock, timeout, sed -i.
#
# An environment is built aside and renamed into place with its stamp already in it: what carries a
# current stamp is whole, everything else is made again. The stamp is one line:
#     1 CHECKSUM SIZE PYTHON REQUESTED
# (format, cksum of the lock file, X.Y, the PIPELINE_PYTHON it was asked for or "-").

CORE_LOCK=$PIPELINE_ROOT/devops/requirements/core.txt
TEST_LOCK=$PIPELINE_ROOT/devops/requirements/test.txt
VENV=${PIPELINE_VENV:-$PIPELINE_ROOT/.venv}
case $VENV in
    /*) ;;
    *) VENV=$PWD/$VENV ;;
esac
# Without a slash at the end the names beside it (VENV.lock, VENV.log) are beside it.
VENV=${VENV%/}

say() {
    printf '%s\n' "$1" >&2
}

die() {
    say "$1"
    exit 2
}

# --- the stamp: what every start pays; no Python is started for it --------------------------------

# True where the environment is whole and made from today's lock file.
venv_is_current() {
    local format sum size version requested
    [ -x "$VENV/bin/python" ] || return 1
    { read -r format sum size version requested <"$VENV/.stamp"; } 2>/dev/null || return 1
    [ "$format $sum $size" = "1 $(cksum <"$CORE_LOCK")" ] || return 1
    [ -d "$VENV/lib/python$version/site-packages" ] || return 1
    [ -z "${PIPELINE_PYTHON:-}" ] || [ "$PIPELINE_PYTHON" = "$requested" ]
}

# True where the tests' packages stand in it too.
tests_are_current() {
    local stamp
    { read -r stamp <"$VENV/.stamp-test"; } 2>/dev/null || return 1
    [ "$stamp" = "1 $(cksum <"$TEST_LOCK")" ]
}

# True where the extras that were ever installed stand in it, from today's lock files.
extras_are_current() {
    local stamp=""
    [ -f "$VENV.extras" ] || return 0
    { stamp=$(cat "$VENV/.stamp-extras"); } 2>/dev/null
    [ "$stamp" = "$(wanted_extras)" ]
}

# Prints what the stamp of the extras must say: the checksums of the lock files of those that are remembered.
wanted_extras() {
    local name files=""
    while read -r name; do
        [ -f "$PIPELINE_ROOT/devops/requirements/$name.txt" ] && files="$files $name.txt"
    done <"$VENV.extras"
    # shellcheck disable=SC2086 # names of files without blanks
    (cd "$PIPELINE_ROOT/devops/requirements" && [ -n "$files" ] && cksum $files)
}

# --- which Python ---------------------------------------------------------------------------------

# Prints "X.Y.Z path" of a Python: its own executable, not a venv's, a shim or a moving symlink, so
# that the environment breaks visibly (and is made again) when that Python goes away.
probe_python() {
    (
        unset PYTHONHOME PYTHONPATH
        "$1" -c 'import os, sys
base = getattr(sys, "_base_executable", None) or sys.executable
print("%d.%d.%d" % sys.version_info[:3] + " " + os.path.realpath(base))'
    ) 2>/dev/null
}

is_new_enough() {
    local major=${1%%.*} rest=${1#*.}
    [ "$major" -gt 3 ] || { [ "$major" -eq 3 ] && [ "${rest%%.*}" -ge 11 ]; }
}

# Sets PYTHON and PYTHON_VERSION, or ends with the one line that says what to install.
choose_python() {
    local name names found too_old=""
    names="python3.14 python3.13 python3.12 python3.11 python3 python"
    if [ -n "${PIPELINE_PYTHON:-}" ]; then
        found=$(probe_python "$PIPELINE_PYTHON") || die "PIPELINE_PYTHON=$PIPELINE_PYTHON cannot be run. $(what_to_install)"
        is_new_enough "${found%% *}" || die "PIPELINE_PYTHON=$PIPELINE_PYTHON is Python ${found%% *}. $(what_to_install)"
        PYTHON_VERSION=${found%% *} PYTHON=${found#* }
        return
    fi
    for name in $names; do
        command -v "$name" >/dev/null 2>&1 || continue
        # A shim may stand on PATH with nothing behind it: only what runs counts.
        found=$(probe_python "$name") || continue
        if is_new_enough "${found%% *}"; then
            PYTHON_VERSION=${found%% *} PYTHON=${found#* }
            return
        fi
        too_old=${too_old:-${found%% *}}
    done
    if [ -n "$too_old" ]; then
        die "This needs Python 3.11 or newer, but the newest here is Python $too_old. $(what_to_install)"
    fi
    die "This needs Python 3.11 or newer, and none was found. $(what_to_install)"
}

what_to_install() {
    local how="python3.11 or newer with its venv module (Debian, Ubuntu: apt install python3 python3-venv; Fedora: dnf install python3)"
    [ "$(uname -s)" = Darwin ] && how="a newer Python (brew install python@3.13)"
    printf '%s' "Install $how and start again, or name one with PIPELINE_PYTHON=/path/to/python3."
}

# --- one at a time --------------------------------------------------------------------------------

# Takes the lock, a folder beside the environment; waits while a living process holds it.
take_lock() {
    local lock=$VENV.lock holder told="" unnamed=0 missing=0
    mkdir -p "$(dirname "$VENV")" 2>/dev/null
    while ! mkdir "$lock" 2>/dev/null; do
        if [ ! -d "$lock" ]; then
            # Released a moment ago; or there can be no folder here.
            missing=$((missing + 1))
            [ "$missing" -lt 20 ] || die "Cannot write in $(dirname "$VENV"). Set PIPELINE_VENV=DIR to a folder of yours for the environment and start again."
            continue
        fi
        missing=0
        holder=""
        { read -r holder <"$lock/holder"; } 2>/dev/null
        # A lock that stays without a name: its maker died before writing it.
        [ -n "$holder" ] && unnamed=0 || unnamed=$((unnamed + 1))
        if [ "$unnamed" -gt 10 ] || holder_is_dead "$holder"; then
            break_lock "$holder" && continue
        fi
        [ -n "$told" ] || say "Another start is creating $VENV; waiting for it (if none is, remove $lock)."
        told=yes
        sleep 1
    done
    # From here to release_lock, leaving in any way leaves neither a lock nor a half-made folder.
    trap release_lock EXIT
    trap 'rm -f "$VENV.log"; exit 130' INT
    trap 'exit 143' TERM HUP
    printf '%s\n' "$$ $(uname -n)" >"$lock/holder"
}

# "PID HOST": a process of another machine or container cannot be asked, so it counts as alive.
holder_is_dead() {
    local pid=${1%% *} host=${1#* }
    [ -n "$1" ] && [ "$host" = "$(uname -n)" ] || return 1
    # `kill` says no as well to a process of another user, which `ps` shows.
    ! kill -0 "$pid" 2>/dev/null && ! ps -p "$pid" >/dev/null 2>&1
}

# Removes the lock of a dead holder; false where another start is doing so. Whoever makes the folder
# inside it is the only one, and looks again: by then the lock may be a new one, of a living process.
break_lock() {
    local lock=$VENV.lock now=""
    mkdir "$lock/breaking" 2>/dev/null || return 1
    { read -r now <"$lock/holder"; } 2>/dev/null
    if [ "$now" = "$1" ]; then
        mv "$lock" "$lock.dead-$$" && rm -rf "$lock.dead-$$"
    else
        rmdir "$lock/breaking"
    fi
}

release_lock() {
    rm -rf "$VENV.new-$$" "$VENV.lock"
    trap - EXIT INT TERM HUP
}

# --- making it ------------------------------------------------------------------------------------

# Returns with $VENV whole; one line on stderr where something had to be made.
ensure_venv() {
    local added
    venv_is_current && return
    refuse_foreign_folder
    take_lock
    if ! venv_is_current; then
        choose_python
        say "$(first_or_again) ${VENV##*/} with Python $PYTHON_VERSION (about half a minute) ..."
        added=$(added_packages)
        [ -z "$added" ] || say "Packages that you added are not carried over:$added. To add them again: $(how_to_add)$added"
        rm -rf "$VENV".new-* "$VENV".old-*
        make_venv "$VENV.new-$$"
        if [ -e "$VENV" ] || [ -h "$VENV" ]; then
            mv "$VENV" "$VENV.old-$$" || die "Cannot replace $VENV; remove it and start again."
        fi
        mv "$VENV.new-$$" "$VENV" || die "Cannot make $VENV."
        rm -rf "$VENV.old-$$" "$VENV.log"
    fi
    release_lock
}

# Prints the names that the lock file $1 pins, each on a line.
pinned_names() {
    local line
    while read -r line; do
        case $line in
            [A-Za-z0-9]*==*)
                line=${line%%==*}
                printf '%s\n' "${line//[-_.]/-}"
                ;;
        esac
    done <"$1"
}

# Prints what stands in the environment and came from none of our lock files, each NAME==VERSION after a blank.
added_packages() {
    local folder name version ours=" pip setuptools wheel uv course-pipeline "
    [ -f "$VENV/.ours" ] || return 0
    while read -r name; do
        ours="$ours$name "
    done <"$VENV/.ours"
    shopt -s nocasematch
    for folder in "$VENV"/lib/python*/site-packages/*.dist-info; do
        [ -d "$folder" ] || continue
        name=${folder##*/}
        name=${name%.dist-info}
        version=${name##*-}
        name=${name%-*}
        name=${name//[-_.]/-}
        case $ours in
            *" $name "*) ;;
            *) printf ' %s==%s' "$name" "$version" ;;
        esac
    done
}

how_to_add() {
    if command -v uv >/dev/null 2>&1; then
        printf 'uv pip install --python %s' "$VENV"
    else
        printf '%s -m pip install' "$VENV/bin/python"
    fi
}

first_or_again() {
    if [ -e "$VENV" ]; then
        printf 'The environment is incomplete or out of date; rebuilding'
    else
        printf 'First start: making'
    fi
}

# Only a folder that this script made may be replaced where the user chose the place.
refuse_foreign_folder() {
    [ -n "${PIPELINE_VENV:-}" ] && [ -e "$VENV" ] && [ ! -f "$VENV/.stamp" ] || return 0
    rmdir "$VENV" 2>/dev/null || die "PIPELINE_VENV=$PIPELINE_VENV is a folder with something else in it; name a new one."
}

# Builds a whole environment in the folder $1: the stamp is the last thing written.
make_venv() {
    (
        prepare_shell
        if command -v uv >/dev/null 2>&1; then
            uv venv --relocatable --python "$PYTHON" "$1"
        fi
        [ -x "$1/bin/python" ] || "$PYTHON" -m venv "$1" || exit
        install_lock "$1" "$CORE_LOCK"
    ) >"$VENV.log" 2>&1 || explain_failure
    printf '%s\n' "1 $(cksum <"$CORE_LOCK") ${PYTHON_VERSION%.*} ${PIPELINE_PYTHON:--}" >"$1/.stamp" || explain_failure
}

# The installers see neither the settings of the folder we were called from nor another Python's.
prepare_shell() {
    cd "$PIPELINE_ROOT" || exit
    unset PYTHONHOME PYTHONPATH
}

# Installs exactly what the lock file $2 pins, every file checked against its hash, into $1.
install_lock() {
    local python=$1/bin/python
    pinned_names "$2" >>"$1/.ours"
    if command -v uv >/dev/null 2>&1; then
        uv pip install --python "$python" --require-hashes --no-deps -r "$2" && return
        echo "uv failed; trying pip, which may know a proxy or a private index that uv does not."
    fi
    "$python" -m pip --version || "$python" -m ensurepip || return
    PIP_USER=0 "$python" -m pip install --disable-pip-version-check --no-input --require-hashes --no-deps -r "$2"
}

# Adds the tests' packages to the environment.
ensure_tests() {
    tests_are_current && return
    take_lock
    if ! tests_are_current; then
        say "Installing what the tests need (about a minute) ..."
        (
            prepare_shell
            install_lock "$VENV" "$TEST_LOCK"
        ) >"$VENV.log" 2>&1 || explain_failure
        printf '%s\n' "1 $(cksum <"$TEST_LOCK")" >"$VENV/.stamp-test"
        rm -f "$VENV.log"
    fi
    release_lock
}

# Prints the names of all extras, each after a blank.
known_extras() {
    local file name
    for file in "$PIPELINE_ROOT"/devops/requirements/*.txt; do
        name=${file##*/}
        case $name in
            core.txt | test.txt) ;;
            *) printf ' %s' "${name%.txt}" ;;
        esac
    done
}

# Prints the extra that $1 is another name of, else $1.
canonical_extra() {
    case $1 in
        sql) printf postgres ;;
        bedrock-mantle | aws) printf bedrock ;;
        google-cloud) printf vertex ;;
        *) printf '%s' "$1" ;;
    esac
}

# Installs the extras $@ and remembers them: an environment that is made again gets them too.
install_extras() {
    local name names
    [ $# -gt 0 ] || die "Name what to install: ./pipeline.sh install EXTRA ... There are:$(known_extras)."
    for name; do
        name=$(canonical_extra "$name")
        case "$(known_extras) " in
            *" $name "*) ;;
            *) die "There is no extra '$name'. There are:$(known_extras)." ;;
        esac
    done
    ensure_venv
    take_lock
    names=$(remembered_extras)
    for name; do
        name=$(canonical_extra "$name")
        case "$names " in
            *" $name "*) ;;
            *) names="$names $name" ;;
        esac
    done
    put_extras "$names"
    release_lock
    say "Installed:$names."
}

# Prints the names of the extras that were ever installed, each after a blank.
remembered_extras() {
    local name
    [ -f "$VENV.extras" ] || return 0
    while read -r name; do
        printf ' %s' "$name"
    done <"$VENV.extras"
}

# Adds the extras that are remembered, after the environment was made again or their pins have changed.
ensure_extras() {
    extras_are_current && return
    take_lock
    extras_are_current || put_extras "$(remembered_extras)"
    release_lock
}

# Installs the extras $1, then remembers them.
put_extras() {
    local name
    for name in $1; do
        [ -f "$PIPELINE_ROOT/devops/requirements/$name.txt" ] || continue
        say "Installing what $name needs ..."
        (
            prepare_shell
            install_lock "$VENV" "$PIPELINE_ROOT/devops/requirements/$name.txt"
        ) >"$VENV.log" 2>&1 || explain_failure
    done
    # shellcheck disable=SC2086 # names without blanks
    printf '%s\n' $1 >"$VENV.extras"
    wanted_extras >"$VENV/.stamp-extras"
    rm -f "$VENV.log"
}

# Prints what the stamp of the npm packages locked in the folder $1 must say.
wanted_npm() {
    printf '1 %s' "$(cat "$1/package.json" "$1/package-lock.json" | cksum)"
}

npm_is_current() {
    local stamp=""
    { read -r stamp <"$2/.stamp"; } 2>/dev/null
    [ "$stamp" = "$(wanted_npm "$1")" ]
}

# Adds the npm packages of the tests named $1, locked in the folder $2, to the environment; where there is no npm the
# tests skip what needs them, and say so.
ensure_npm() {
    local from=$PIPELINE_ROOT/$2 into=$VENV/$1
    command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1 || return 0
    npm_is_current "$from" "$into" && return
    take_lock
    if ! npm_is_current "$from" "$into"; then
        say "Installing the $1 of the tests (a few seconds) ..."
        rm -rf "$into"
        if (mkdir "$into" && cp "$from/package.json" "$from/package-lock.json" "$from/.npmrc" "$into" &&
            cd "$into" && npm ci) >"$VENV.log" 2>&1; then
            printf '%s\n' "$(wanted_npm "$from")" >"$into/.stamp"
            rm -f "$VENV.log"
        else
            rm -rf "$into"
            say "The $1 of the tests could not be installed, so what needs it is skipped. All that was said is in $VENV.log."
        fi
    fi
    release_lock
}

# Ends with what went wrong in the words of a person; the whole story stays in the log.
explain_failure() {
    local why="the packages could not be installed"
    local log=$VENV.log
    if grep -qiE 'no space left' "$log"; then
        why="the disk is full"
    elif grep -qiE 'do not match the hashes|hash mismatch' "$log"; then
        why="a downloaded package is not the pinned one (its hash differs)"
    elif grep -qiE 'ensurepip is not available|no module named .?(venv|ensurepip)' "$log"; then
        why="this Python lacks its venv module (Debian, Ubuntu: apt install python3-venv)"
    elif grep -qiE 'resolve host|name resolution|dns error|connection (refused|error|timed)|newconnection|network is unreachable|timed out|proxy' "$log"; then
        why="the package index cannot be reached; check the network or the proxy"
    elif grep -qiE 'no matching distribution|not found in the .*registry|no solution found' "$log"; then
        why="the package index does not have a pinned package for this Python and machine"
    fi
    die "Making ${VENV##*/} failed: $why. All that was said is in $log."
}
