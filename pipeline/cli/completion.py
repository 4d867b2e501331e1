"""`completion`: a script that makes a shell ask this program what may come next."""

from __future__ import annotations

import shlex

import click

from pipeline import environment
from pipeline.cli.main import COMPLETE_VARIABLE
from pipeline.cli.text import say

_NAME = "pipeline.sh"

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
