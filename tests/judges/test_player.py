"""A player of QTI that others wrote shows the items and marks answers: right ones get all marks, others none."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route

from pipeline.export.base import Selection, export
from pipeline.export.responses import ESSAY, NUMBER, Response, responses
from pipeline.publish.questions import ShownQuestion
from pipeline.publish.view import CourseView
from tests import read_back
from tests.acceptance.test_site_html import drafted
from tests.browsers import chromium as chromium
from tests.judges.programs import PACKAGES, judge

_PLAYER = PACKAGES / "@citolab" / "qti-components" / "cdn" / "index.global.js"
_PAGE = "<!DOCTYPE html><meta charset=utf-8><script src=/player.js></script><body></body>"
#: Opens an item, answers it, and returns its outcomes and what is seen of it.
_ANSWER = """async ([address, answers]) => {
  document.body.innerHTML = `<qti-item><item-container item-url="${address}"></item-container></qti-item>`;
  const container = document.querySelector("item-container");
  const until = async (found) => {
    for (let turn = 0; turn < 300 && !found(); turn++) await new Promise((next) => setTimeout(next, 20));
    return found();
  };
  const item = await until(() => (container.shadowRoot || container).querySelector("qti-assessment-item"));
  await until(() => item.variables.some((one) => one.identifier === "MAXSCORE"));
  await item.updateComplete;
  const seen = item.querySelector("qti-item-body").innerHTML;
  const images = [...item.querySelectorAll("img")];
  await until(() => images.every((one) => one.complete));
  const drawn = images.map((one) => one.naturalWidth);
  for (const [name, value] of Object.entries(answers)) item.updateResponseVariable(name, value);
  item.processResponse();
  return { seen, drawn, ...Object.fromEntries(item.variables.map((one) => [one.identifier, one.value])) };
}"""
#: Of the questions, one in so many is answered.
_FOURTH = 4


def right(response: Response) -> str:
    return response.number if response.kind == NUMBER else response.accepted[-1]


def wrong(response: Response, asked: ShownQuestion) -> str:
    if response.kind == NUMBER:
        return str(float(response.number) + 2 * float(response.tolerance) + 1)
    return next((option.letter for option in asked.options if not option.right), "something else")


@pytest.fixture
def page(chromium: Browser) -> Page:
    return chromium.new_page()


@pytest.mark.parametrize("name", ["mathematics national_5", "physics higher", "application_of_mathematics national_4"])
def test_right_answers_get_all_marks(name: str, page: Page) -> None:
    if not _PLAYER.is_file():
        pytest.skip("@citolab/qti-components is not installed: devops/check.sh --judges")
    view = CourseView(drafted(*name.split(), 6))
    [data] = export(Selection(view, view.lessons), ["qti"]).values()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {path: archive.read(path) for path in archive.namelist()}
    items = [(f"items/{lesson.file}/{one.anchor}.xml", one) for lesson in view.lessons for one in lesson.questions]
    chosen = items[::_FOURTH]
    found = judge("qti.mjs", "@citolab/qti-convert", {path: files[path].decode() for path, _ in chosen})
    files |= {path: text.encode() for path, text in found.items()}
    _serve(page, files | {"player.js": _PLAYER.read_bytes(), "": _PAGE.encode()})
    for path, asked in chosen:
        _check(page, path, asked)


def _serve(page: Page, files: dict[str, bytes]) -> None:
    kinds = {"js": "text/javascript", "xml": "application/xml", "svg": "image/svg+xml", "": "text/html"}

    def answer(route: Route) -> None:
        path = route.request.url.removeprefix("http://player.test/")
        if path in files:
            route.fulfill(body=files[path], content_type=kinds[path.rpartition(".")[2]])
        else:
            route.fulfill(status=404)

    page.route("**/*", answer)
    page.goto("http://player.test/")


def _check(page: Page, path: str, asked: ShownQuestion) -> None:
    found = responses(asked)
    marked = [one for one in found if one.kind != ESSAY]
    rights = {f"RESPONSE{one.suffix}": right(one) for one in marked}
    wrongs = {f"RESPONSE{one.suffix}": wrong(one, asked) for one in marked}
    played: dict[str, Any] = page.evaluate(_ANSWER, [path, rights])
    assert float(played["SCORE"]) == sum(one.marks for one in marked), (path, rights)
    assert float(played["MAXSCORE"]) == asked.marks
    assert read_back.of_markup(played["seen"]).holds(asked.ask)
    assert all(played["drawn"])
    if asked.key:
        assert played["FEEDBACK"] == asked.key.letter
    missed = page.evaluate(_ANSWER, [path, wrongs])
    assert float(missed["SCORE"]) == 0, (path, wrongs)
