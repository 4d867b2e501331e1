"""`ui`: the desk in the browser."""

from __future__ import annotations

import click

from pipeline import extras
from pipeline.cli.options import own_option, store_option
from pipeline.cli.text import say

#: As pipeline.ui.server has it, which is loaded only when the desk is served.
_PORT = 8484


@click.command("ui")
@own_option("ui", "--port", type=click.IntRange(0, 65535), default=_PORT, metavar="N", show_default=True,
            help="The port to serve on; 0 = any that is free.")  # fmt: skip
@own_option("ui", "--no-open", is_flag=True, help="Print the link only; open no browser.")
@own_option("ui", "--host", default="127.0.0.1", metavar="ADDRESS", show_default=True,
            help="The address to serve on; another than this machine's own needs --token-file.")  # fmt: skip
@own_option("ui", "--token-file", default="", metavar="FILE",
            help="A file with a token of 20 or more characters that lets in, as often as it is given.")  # fmt: skip
@own_option("ui", "--root-path", default="", metavar="PATH", help="The prefix under which a proxy shows the desk.")
@own_option("ui", "--allowed-host", multiple=True, metavar="NAME",
            help="A host name that a proxy forwards; can be given more than once.")  # fmt: skip
@store_option
def ui(
    port: int, no_open: bool, host: str, token_file: str, root_path: str, allowed_host: tuple[str, ...],
    store: str | None,
) -> None:  # fmt: skip
    """Serve the desk in the browser: watch, steer and review runs. Ctrl-C stops it, and no run."""
    if not all(map(extras.is_installed, extras.packages("ui"))):
        raise extras.not_installed("ui", "The desk in the browser")
    from pipeline.ui.server import ServerAddress, serve

    serve(store, ServerAddress(host, port, token_file, root_path, allowed_host), open_browser=not no_open, say=say)
