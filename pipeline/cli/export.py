"""`export`: a course as worksheets, slides, quizzes, cards and tables to take away."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pipeline.app.words import count, size
from pipeline.cli.options import NamedPath, common_options, own_option, run_argument
from pipeline.cli.text import table, tell, warn

if TYPE_CHECKING:
    from pipeline.app.export import Exported

#: Names listed on a line.
_NAMED = 10


@click.command("export")
@run_argument
@own_option("export", "--to", "formats", required=True, metavar="FORMAT[,FORMAT]",
            help="docx, pptx, pdf, gift, qti, imscc, anki, csv, google-forms, markdown.")  # fmt: skip
@own_option("export", "--lesson", "lessons", type=int, multiple=True, metavar="N",
            help="Only this lesson; may be given more than once.  [default: all that are made]")  # fmt: skip
@own_option("export", "--difficulty", default="", metavar="support|core|challenge",
            help="Only worksheets of this difficulty.  [default: all three]")  # fmt: skip
@own_option("export", "--out", type=NamedPath(), metavar="DIR",
            help="Where the files are written.  [default: exports/COURSE in the current folder]")  # fmt: skip
@click.option("--overwrite", is_flag=True, help="Export over files that were changed by hand.")
@common_options
def export(
    run: str, formats: str, lessons: tuple[int, ...], difficulty: str, out: Path | None, overwrite: bool,
    as_json: bool, store: str | None,
) -> None:  # fmt: skip
    """Write a course as files to take away; the same course gives the same bytes.

    Works on any run, complete or not: of an unfinished one, the lessons that are made. Files for
    pupils hold no answers. A file that you have changed since is kept and named.
    """
    from pipeline.app.export import export_run
    from pipeline.app.stores import open_store
    from pipeline.export.base import listed

    names, place = listed(formats), open_store(store)
    made = export_run(
        place, run, names, lessons=lessons, difficulty=difficulty, out=out, overwrite=overwrite, begin=_begin
    )  # fmt: skip
    tell(made.to_json(), _lines(made), as_json=as_json)


def _begin(name: str) -> None:
    """Say what is being made to whoever waits for it."""
    if sys.stderr.isatty():
        warn(f"Making {name} ...")


def _lines(made: Exported) -> Iterator[str]:
    """Yield what was written, for whom, and what is not in it."""
    from pipeline.export.base import audience

    view, written = made.chosen.view, made.written
    yield f"{view.title}, {count(len(made.chosen.lessons), 'lesson')} of {view.total}, in {made.folder}\n"
    groups = {name: (name.split("/")[0], audience(name)) for name in made.files}
    numbers, sizes = Counter(groups.values()), Counter[tuple[str, str]]()
    for name, group in groups.items():
        sizes[group] += made.files[name]
    rows = [[*group, str(number), size(sizes[group])] for group, number in numbers.items()]
    yield table(["Format", "For", "Files", "Size"], rows, right=["Files", "Size"])
    yield ""
    same = len(made.files) - len(written.new) - len(written.kept)
    yield f"Written: {count(len(written.new), 'file')}." + (f" Unchanged: {same}." if same else "")
    if written.kept:
        yield f"Kept as you changed them: {_named(written.kept)}. --overwrite exports over them."
    if written.lost:
        yield f"Written over your changes: {_named(written.lost)}."
    if made.outdated:
        yield f"Of an earlier export, and not in this one: {_named(made.outdated)}."
    if made.missing:
        yield f"Not in it, not made yet: lessons {_named(list(map(str, made.missing)))}."
    if view.bundle.draft:
        yield f"Offline draft: made without a model and {view.readers}."
    yield view.rights_line


def _named(names: list[str] | tuple[str, ...]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
