"""The picture of costs: what it shows, and that it is a picture whatever a step is called."""

from __future__ import annotations

import itertools
import sys
from decimal import Decimal as D
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

from pipeline.app.cost_report import MOST_STEPS, Bar, Panel, Statement, panels
from pipeline.cli import cost_chart
from pipeline.cli.cost_chart import PARTS, png_of, svg_of, ticks
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


def test_chart_has_a_place_for_days_without_spend() -> None:
    days, _ = panels(Statement([spent("2026-02-27", "1"), spent("2026-03-02", "1")]))
    assert [(each.key, each.used) for each in days.bars] == [
        ("2026-02-27", D(1)), ("2026-02-28", D(0)), ("2026-03-01", D(0)), ("2026-03-02", D(1)),
    ]  # fmt: skip


def test_chart_of_many_days_shows_months() -> None:
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
        "a: $4.00 used",
        "a: $2.00 wasted",
        "b: $1.00 used",
        "s: $3.00 used",
        "s: $1.00 possibly more",
    ]
    assert found["a: $4.00 used"][1] == pytest.approx(2 * found["a: $2.00 wasted"][1], abs=0.2)
    assert found["s: $3.00 used"][0] == pytest.approx(3 * found["s: $1.00 possibly more"][0], abs=0.3)


def test_svg_stays_within_its_frame() -> None:
    text = svg_of([Panel("Days", [bar("a", "9.2")]), Panel("Steps", [bar("s", "26.35")])])
    root = ElementTree.fromstring(text)
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for rect in root.iter(f"{SVG}rect"):
        x, y = float(rect.get("x", 0)), float(rect.get("y", 0))
        assert 0 <= x <= x + float(rect.attrib["width"]) <= width
        assert 0 <= y <= y + float(rect.attrib["height"]) <= height


def test_svg_holds_texts_as_texts() -> None:
    name = '</text><script>x("&")</script>\x00\x1b[31m\ud800'
    text = svg_of([Panel(name, [bar(name)]), Panel("Steps", [bar(name)])])
    root = ElementTree.fromstring(text.encode())
    assert {each.tag for each in root.iter()} == {SVG + tag for tag in ("svg", "title", "rect", "text", "line")}
    assert any("<script>" in (each.text or "") for each in root.iter(f"{SVG}title"))


def test_svg_of_nothing_is_a_picture() -> None:
    days, steps = panels(Statement())
    assert rects(svg_of([days, steps])) == []


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


def test_axis_labels_have_the_places_they_need() -> None:
    assert [name for _, name in ticks([bar("a", "1.01")])][:2] == ["$0.0", "$0.5"]
    assert ticks([bar("a", "4500")])[2][1] == "$2,000"


def test_file_of_another_kind_is_refused_before_anything_is_read() -> None:
    with pytest.raises(ConfigError, match=r"costs\.pdf") as caught:
        cost_chart.check(Path("costs.pdf"))
    assert "costs.svg" in caught.value.hint


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


def test_picture_in_no_folder_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none/costs\.svg"):
        cost_chart.draw(Statement(), tmp_path / "none" / "costs.svg")


def test_png_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ConfigError, match="matplotlib") as caught:
        png_of(panels(Statement()))
    assert "install" in caught.value.hint
    assert "'matplotlib>=3.9,<4'" in caught.value.hint


def test_png_is_drawn_by_matplotlib_where_it_is_installed() -> None:
    pytest.importorskip("matplotlib")
    data = png_of(panels(Statement([spent("2026-01-09", "1", "$x$ \\frac{")])))
    assert data.startswith(b"\x89PNG\r\n\x1a\n")


class Axes:
    """Remembers what was drawn on it."""

    def __init__(self) -> None:
        self.bars: list[tuple[str, list[float], list[float]]] = []
        self.said: dict[str, Any] = {}

    def bar(self, places: list[int], sizes: list[float], *, bottom: list[float], color: str, label: str) -> None:
        self.bars.append((label, sizes, bottom))

    def barh(self, places: list[int], sizes: list[float], *, left: list[float], color: str, label: str) -> None:
        self.bars.append((label, sizes, left))

    def set_xlim(self, low: float, high: float) -> None:
        self.said["xlim"] = (low, high)

    def set_ylim(self, low: float, high: float) -> None:
        self.said["ylim"] = (low, high)

    def set_title(self, text: str, **_: Any) -> None:
        self.said["title"] = text

    def set_xticks(self, ticks: list[float], labels: list[str], **_: Any) -> None:
        self.said["x"] = labels

    def set_yticks(self, ticks: list[float], labels: list[str], **_: Any) -> None:
        self.said["y"] = labels

    def invert_yaxis(self) -> None:
        self.said["inverted"] = True

    def get_legend_handles_labels(self) -> tuple[list[int], list[str]]:
        return [1] * len(self.bars), [name for name, _, _ in self.bars]


class Figure:
    """Two axes; the last one made is kept."""

    last: Figure

    def __init__(self, **_: Any) -> None:
        self.axes = (Axes(), Axes())
        self.names: list[str] = []
        Figure.last = self

    def subplots(self, rows: int, columns: int) -> tuple[Axes, Axes]:
        return self.axes

    def legend(self, handles: list[int], names: list[str], **_: Any) -> None:
        self.names = names


class Canvas:
    """Writes a mark in the place of a picture."""

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def print_png(self, out: Any, **_: Any) -> None:
        out.write(b"PNG")


def test_png_shows_what_the_svg_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes: dict[str, dict[str, Any]] = {
        "matplotlib": {},
        "matplotlib.figure": {"Figure": Figure},
        "matplotlib.backends": {},
        "matplotlib.backends.backend_agg": {"FigureCanvasAgg": Canvas},
    }
    for name, members in fakes.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    shown = [Panel("Days", [bar("2026-01-09", "4", "2", "1"), bar("2026-01-10")]), Panel("Steps", [bar("$a$", "7")])]
    assert png_of(shown) == b"PNG"
    above, below = Figure.last.axes
    assert above.bars == [
        ("used", [4.0, 1.0], [0.0, 0.0]), ("wasted", [2.0, 0.0], [4.0, 1.0]), ("possibly more", [1.0, 0.0], [6.0, 1.0]),
    ]  # fmt: skip
    assert (above.said["x"], above.said["ylim"]) == (["2026-01-09", "2026-01-10"], (0, 8.0))
    assert (below.said["y"], below.said["xlim"], below.said["inverted"]) == (["\\$a\\$"], (0, 8.0), True)
    assert below.said["x"][1] == "\\$2"
    assert Figure.last.names == [name for _, _, name in PARTS]
