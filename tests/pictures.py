"""`python -m tests.pictures`: the picture of the README, of a course that is being made."""

from __future__ import annotations

import sys
import tempfile
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from playwright.sync_api import sync_playwright

from pipeline.clock import SystemClock
from pipeline.records.charge import Charge
from pipeline.records.kinds import Fact
from tests.browsers import chromium_path
from tests.desks import serving
from tests.documents import DOCS
from tests.runs import Script

TARGET = DOCS / "pictures" / "desk.png"
WIDTH, HEIGHT = 1280, 1060
TITLES = (
    "Working with surds and laws of indices", "Laws of indices and rounding", "Reverse percentages",
    "Expanding brackets", "Factorising", "Simplifying an algebraic fraction", "Independent practice: algebra",
    "Short assessment: surds to factorising", "Equation of a straight line", "Solving inequations",
    "Simultaneous equations", "Changing the subject", "Graphs of quadratics", "The quadratic formula",
    "Pythagoras and its converse", "Properties of shapes", "Similar shapes", "Revision and mock exam",
)  # fmt: skip


class Slow(Script):
    """A run whose records are half a minute apart."""

    def add(self, fact: Fact, *, after: float = 1.0) -> int:
        return super().add(fact, after=after if after > 1 else 25)


def _charge(cents: str) -> Charge:
    usd = Decimal(cents) / 100
    return Charge("exact", usd, usd, tokens={"input": 9000, "output": 2400}, parts={"output": usd})


def _course(root: Path) -> Script:
    """A course whose fourteenth to seventeenth lesson are being made."""
    script = Slow(root, at=SystemClock().now() - timedelta(seconds=1890))
    script.begin("seed").complete("seed", {"course_id": "course_c84775", "outcomes_created": 40}, seconds=0.2)
    script.begin("sow").call("sow", None, _charge("9.1"))
    entries = [{"order": number, "label": title, "lesson_type": "teach"} for number, title in enumerate(TITLES, 1)]
    scheme = {"course_id": "course_c84775", "lesson_count": len(TITLES), "entries": entries}
    script.complete("sow", {"lesson_count": len(TITLES)}, seconds=310, scheme=scheme)
    script.begin("lessons")
    for number, title in enumerate(TITLES[:13], 1):
        task = f"lessons/{number}"
        for _ in range(1 + number % 2):
            script.call("lessons", task, _charge(str(5 + number % 4)), worst="0.44")
        script.task("lessons", task, {"title": title})
    for number in range(14, 18):
        script.call("lessons", f"lessons/{number}", None, worst="0.33")
    script.head()
    return script


def main() -> None:
    """Make the picture, and leave nothing else behind."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        root = Path(folder) / "runs"
        script = _course(root)
        with serving(f"files:{root}") as desk:
            browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(desk.link)
            page.goto(f"{desk.url}runs/{script.id}")
            page.get_by_text("Live, record").wait_for()
            TARGET.parent.mkdir(exist_ok=True)
            page.screenshot(path=TARGET)
            browser.close()
        script.leave()
    sys.stdout.write(f"{TARGET}\n")


if __name__ == "__main__":
    main()
