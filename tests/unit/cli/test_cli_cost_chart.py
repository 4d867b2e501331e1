"""The picture of costs: what it shows, and that it is a picture whatever a step is called."""

from __future__ import annotations

import itertools
import sys
from decimal import Decimal as D
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from pipeline.app.cost_bars import MOST_STEPS, Bar, Panel, panels, ticks
from pipeline.app.cost_report import Statement
from pipeline.cli import cost_chart
from pipeline.cli.cost_chart import PARTS, png_of, svg_of
from pipeline.cost.report import NOWHERE, Posting
from pipeline.errors import ConfigError
from pipeline.records.run import Spend

SVG = "{http://www.w3.org/2000/svg}"


def spent(day: str, usd: str, step: str = "lessons", outcome: str = "used", **more: Any) -> Posting:
    return Posting(NOWHERE, step, "lesson", "m", day, outcome, "", Spend(calls=1, usd=D(usd), **more))


def bar(key: str, used: str = "1", wasted: str = "0", more: str = "0") -> Bar:
    return Bar(key, D(used), D(wasted), D(more))


def test_chart_tells_used_wasted_and_possible_spend_apart() -> None:
    postings = [
        spent("2026-01-09", "2"),
        spent("2026-01-09", "0.5", outcome="wasted"),
        spent("2026-01-09", "0", "sow", "open", high=D("0.75")),
    ]
    days, steps = panels(Statement(postings))
    assert days == Panel("Spend by day (UTC)", [bar("2026-01-09", "2.0", "0.5", "0.75")])
    assert steps.bars == [bar("lessons", "2.0", "0.5"), bar("sow", "0", "0", "0.75")]


def test_chart_has_a_place_for_days_without_spend_and_months_for_many_days() -> None:
    days, _ = panels(Statement([spent("2026-02-27", "1"), spent("2026-03-02", "1")]))
    assert [(each.key, each.used) for each in days.bars] == [
        ("2026-02-27", D(1)), ("2026-02-28", D(0)), ("2026-03-01", D(0)), ("2026-03-02", D(1)),
    ]  # fmt: skip
    days, _ = panels(Statement([spent("2026-01-31", "1"), spent("2026-05-01", "2"), spent("2026-05-30", "4")]))
    assert (days.title, days.bars) == ("Spend by month (UTC)", [bar("2026-01"), bar("2026-05", "6")])


def test_chart_of_many_steps_shows_the_dearest_and_the_others_together() -> None:
    postings = [spent("2026-01-09", str(n + 1), f"step{n}") for n in range(MOST_STEPS + 4)]
    _, steps = panels(Statement(postings))
    assert len(steps.bars) == MOST_STEPS
    assert steps.bars[-1] == bar("5 other steps", "15")
    assert sum(each.used for each in steps.bars) == sum(posting.spend.usd for posting in postings)


def test_chart_says_which_calls_are_not_in_it() -> None:
    days, _ = panels(Statement([spent("2026-01-09", "1", unpriced=1), spent("", "1", unbounded=2)]))
    assert days.title == "Spend by day (UTC); 3 calls of unknown cost not in it"
    assert [each.key for each in days.bars] == ["2026-01-09", "(unknown)"]


def rects(text: str) -> list[tuple[str, float, float]]:
    """Hover text, width and height of the bars."""
    found = []
    for rect in ElementTree.fromstring(text).iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        if title is not None:
            found.append((str(title.text), float(rect.attrib["width"]), float(rect.attrib["height"])))
    return found


def test_svg_bars_are_as_long_as_their_amounts() -> None:
    text = svg_of([Panel("Days", [bar("a", "4", "2"), bar("b", "1")]), Panel("Steps", [bar("s", "3", "0", "1")])])
    found = {title: (width, height) for title, width, height in rects(text)}
    assert list(found) == [
        "a: $4.00 used", "a: $2.00 wasted", "b: $1.00 used", "s: $3.00 used", "s: $1.00 possibly more",
    ]  # fmt: skip
    assert found["a: $4.00 used"][1] == pytest.approx(2 * found["a: $2.00 wasted"][1], abs=0.2)
    assert found["s: $3.00 used"][0] == pytest.approx(3 * found["s: $1.00 possibly more"][0], abs=0.3)
    assert rects(svg_of(panels(Statement()))) == []


def test_svg_holds_texts_as_texts() -> None:
    name = '</text><script>x("&")</script>\x00\x1b[31m\ud800'
    text = svg_of([Panel(name, [bar(name)]), Panel("Steps", [bar(name)])])
    root = ElementTree.fromstring(text.encode())
    assert {each.tag for each in root.iter()} == {SVG + tag for tag in ("svg", "title", "rect", "text")}
    assert any("<script>" in (each.text or "") for each in root.iter(f"{SVG}title"))


@pytest.mark.parametrize(
    ("most", "last", "number"),
    [
        ("0", "1", 2),
        ("9.2", "10", 6),
        ("26.35", "30", 4),
        ("100", "100", 6),
        ("0.0031", "0.004", 5),
        ("1.01", "1.5", 4),
    ],
)
def test_axis_has_few_round_steps_that_reach_the_top(most: str, last: str, number: int) -> None:
    marks = [mark for mark, _ in ticks([bar("a", most)])]
    assert (marks[-1], len(marks)) == (D(last), number)
    assert {b - a for a, b in itertools.pairwise(marks)} == {marks[1]}
    assert [name for _, name in ticks([bar("a", "1.01")])][:2] == ["$0.0", "$0.5"]


def test_picture_replaces_a_file_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "costs.svg"
    path.write_text("old")
    cost_chart.draw(Statement([spent("2026-01-09", "1")]), path)
    assert path.read_text().startswith("<svg")
    monkeypatch.setattr("os.replace", _refused)
    with pytest.raises(ConfigError, match="cannot be written"):
        cost_chart.draw(Statement(), path)
    assert "lessons" in path.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["costs.svg"]


def _refused(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_png_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError, match="matplotlib") as caught:
        png_of(panels(Statement()))
    assert "install plot" in caught.value.hint


def test_png_shows_what_the_svg_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("matplotlib.figure")
    made, figures = module.Figure, []

    def kept(**how: Any) -> Any:
        figures.append(made(**how))
        return figures[-1]

    monkeypatch.setattr(module, "Figure", kept)
    shown = [Panel("Days", [bar("2026-01-09", "4", "2", "1"), bar("$x$ \\frac{")]), Panel("Steps", [bar("$a$", "7")])]
    assert png_of(shown).startswith(b"\x89PNG\r\n\x1a\n")
    (figure,) = figures
    assert {"Days", "2026-01-09", "$x$ \\frac{", "$a$", "$7.00", *(name for _, _, name in PARTS)} <= {
        each.get_text() for each in figure.texts
    }
    pixels = (figure.get_figwidth() * 100, figure.get_figheight() * 100)
    drawn = [(each.get_width() * pixels[0], -each.get_height() * pixels[1]) for each in figure.artists]
    for title, width, height in rects(svg_of(shown)):
        assert any(abs(width - w) < 0.1 > abs(height - h) for w, h in drawn), title
