"""`ui`: the desk in the browser."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pipeline import extras
from pipeline.app.words import count
from pipeline.cli.options import NamedPath, RunName, common_options, own_option
from pipeline.cli.text import tell
from pipeline.clock import SystemClock

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
@own_option("ui", "--export", type=NamedPath(), metavar="DIR",
            help="Write the pages of the runs RUN as files into a new folder instead.")  # fmt: skip
@click.argument("runs", nargs=-1, type=RunName(), metavar="[RUN]...")
@common_options
def ui(
    port: int, no_open: bool, host: str, token_file: str, root_path: str, allowed_host: tuple[str, ...],
    export: Path | None, runs: tuple[str, ...], as_json: bool, store: str | None,
) -> None:  # fmt: skip
    """Serve the desk in the browser: watch, steer and review runs. Ctrl-C stops it, and no run.

    With --export DIR RUN... the pages of these runs are written as files that open from a disk.
    """
    if (export is None) == bool(runs):
        raise click.UsageError("--export DIR and the runs RUN... go together.")
    if not all(map(extras.is_installed, extras.packages("ui"))):
        raise extras.not_installed("ui", "The desk in the browser")
    if export is not None:
        from pipeline.ui.export import export as write

        pages, left_out = write(store, export, runs, SystemClock().now().strftime("%d %b %Y %H:%M UTC"))
        lines = [f"Wrote {count(pages, 'page')}: {export / 'index.html'}"]
        if left_out:
            lines.append(f"{count(left_out, 'link')} of them lead to no page: a copy has {pages:,} at most.")
        done = {"index": str(export / "index.html"), "pages": pages, "links_without_page": left_out}
        tell([done], lines, as_json=as_json)
        return
    from pipeline.ui.server import ServerAddress, serve

    def told(of: str, link: str) -> None:
        lines = [f"The desk of {of}: {link}", "Ctrl-C stops it, and no run."]
        tell([{"store": of, "link": link}], lines, as_json=as_json)
        sys.stdout.flush()

    address = ServerAddress(host, port, token_file, root_path, allowed_host)
    serve(store, address, open_browser=not no_open, told=told)
