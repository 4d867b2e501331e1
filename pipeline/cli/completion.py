"""`completion` and `extras`: what makes the program more convenient: a shell script, optional packages."""

from __future__ import annotations

import shlex

import click

from pipeline import environment
from pipeline.cli.main import COMPLETE_VARIABLE
from pipeline.cli.options import json_option
from pipeline.cli.text import say, say_json, table
from pipeline.extras import PURPOSES, how_to_install, is_installed, packages

_NAME = "pipeline.sh"

#: click's own scripts find the program on the PATH only, and its bash one needs bash 4.4.
_BASH = """\
_pipeline_complete() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        case "$line" in
            plain,*) COMPREPLY[${#COMPREPLY[@]}]="${line#plain,}" ;;
            dir,*|file,*)
                # A folder is followed by a slash, not by a blank; bash 3.2 does not know how to ask for it.
                compopt -o filenames 2>/dev/null
                COMPREPLY=( $(compgen -f -- "${COMP_WORDS[COMP_CWORD]}") ) ;;
        esac
    done < <(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" @VARIABLE@=bash_complete @PROGRAM@)
}
complete -F _pipeline_complete @NAME@
"""

_ZSH = """\
#compdef @NAME@
_pipeline_complete() {
    local -a reply described
    local type value help
    reply=("${(@f)$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) @VARIABLE@=zsh_complete @PROGRAM@)}")
    for type value help in ${reply}; do
        case "$type" in
            plain) if [[ "$help" == "_" ]]; then described+=("$value"); else described+=("$value:$help"); fi ;;
            *) _files ;;
        esac
    done
    (( ${#described} )) && _describe -V unsorted described
}
compdef _pipeline_complete @NAME@
"""

_FISH = """\
function _pipeline_complete
    set -l reply (env @VARIABLE@=fish_complete COMP_WORDS=(commandline -cp) COMP_CWORD=(commandline -t) @PROGRAM@)
    for line in $reply
        set -l parts (string split -m 1 "," -- $line)
        switch $parts[1]
            case plain
                echo $parts[2]
            case '*'
                __fish_complete_path (commandline -t)
        end
    end
end
complete --no-files --command @NAME@ --arguments "(_pipeline_complete)"
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


@click.command("completion")
@click.argument("shell", type=click.Choice(sorted(SCRIPTS)))
def completion(shell: str) -> None:
    """Print a shell's completion script.

    \b
    bash:  source <(./pipeline.sh completion bash)
    zsh:   source <(./pipeline.sh completion zsh)
    fish:  ./pipeline.sh completion fish | source
    """  # noqa: D301 - click reads the backspace
    program = shlex.quote(str(environment.home() / _NAME))
    text = SCRIPTS[shell].replace("@VARIABLE@", COMPLETE_VARIABLE).replace("@NAME@", _NAME)
    say(text.replace("@PROGRAM@", program).rstrip("\n"))


@click.command("extras")
@json_option
def extras(as_json: bool) -> None:
    """List optional packages: what each extra is for, whether it is installed, and how to install it."""
    missing = {extra: [name for name in packages(extra) if not is_installed(name)] for extra in PURPOSES}
    if as_json:
        for extra, purpose in PURPOSES.items():
            say_json({"extra": extra, "purpose": purpose, "packages": packages(extra), "missing": missing[extra],
                      "install": how_to_install(extra)})  # fmt: skip
        return
    rows = [[extra, purpose, f"missing: {', '.join(missing[extra])}" if missing[extra] else "installed"]
            for extra, purpose in PURPOSES.items()]  # fmt: skip
    say(table(["Extra", "Needed for", "Status"], rows))
    for extra, names in missing.items():
        if names:
            say(f"\nTo install {extra}: {how_to_install(extra)}")
