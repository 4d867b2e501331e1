"""`extras`: which optional packages there are, before something fails without them."""

from __future__ import annotations

import click

from pipeline.cli.options import json_option
from pipeline.cli.text import say, say_json, table
from pipeline.extras import PURPOSES, how_to_install, is_installed, packages


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
