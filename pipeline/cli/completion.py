"""`completion` and `extras`: what makes the program more convenient: a shell script, optional packages."""

from __future__ import annotations

import shlex

import click

from pipeline import environment
from pipeline.cli.main import COMPLETE_VARIABLE, root
from pipeline.cli.options import json_option
from pipeline.cli.text import say, say_json, table, tell
from pipeline.extras import PURPOSES, how_to_install, is_installed, packages

_NAME, _INSTALLED_NAME = "pipeline.sh", "course-pipeline"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
@json_option
def completion(shell: str, as_json: bool) -> None:
    """Print a shell's completion script.

    \b
    bash:  source <(./pipeline.sh completion bash)
    zsh:   source <(./pipeline.sh completion zsh)
    fish:  ./pipeline.sh completion fish | source
    """  # noqa: D301 - click reads the backspace
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    installed = environment.is_installed()
    made = found(root, {}, _INSTALLED_NAME if installed else _NAME, COMPLETE_VARIABLE)
    script = (made.source_template % made.source_vars()).strip("\n")
    if not installed:
        # click calls what is on the PATH; pipeline.sh need not be there.
        program = f" {shlex.quote(str(environment.home() / _NAME))})"
        script = script.replace(f"    (( ! $+commands[{_NAME}] )) && return 1\n", "")
        script = script.replace(" $1)", program).replace(f" {_NAME})", program)
    tell([{"shell": shell, "script": script}], [script], as_json=as_json)


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
    if wanted := [extra for extra, names in missing.items() if names]:
        say()
    for extra in wanted:
        say(f"To install {extra}: {how_to_install(extra)}")
