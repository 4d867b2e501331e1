"""Time on the desk: any point of a run, what differs, and forks with what they make again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.app.processes import start
from pipeline.app.stores import open_store
from pipeline.store.reader import load
from tests.acceptance.dots import TOOLS
from tests.desks import Served
from tests.graph_runs import Noted, loop
from tests.sample_runs import failed_run
from tests.unit.ui.test_questions import await_status


@pytest.fixture
def run(root: Path) -> str:
    return failed_run(root)


def test_slider_stands_at_every_checkpoint(desk: Served, run: str, root: Path) -> None:
    got = desk.data(f"runs/{run}/time")
    assert [each["step"] for each in got["points"]] == ["start", "seed", "sow", "lessons", "end"]
    assert (got["at"], got["last"], got["point"]) == (got["points"][-1]["seq"], got["points"][-1]["seq"], 4)
    sow = desk.data(f"runs/{run}/time?point=2")
    assert sow["at"] == got["points"][2]["seq"] == desk.data(f"runs/{run}/time?at=sow")["at"]
    assert [(each["step"], each["status"]) for each in sow["steps"]][:2] == [
        ("seed", "completed"),
        ("sow", "completed"),
    ]
    assert sow["cost_usd"] == 0.05
    assert [each["name"] for each in sow["made"]["values"]] == ["outputs", "scheme"]
    assert "Expanding pairs of brackets" in sow["made"]["values"][1]["text"]
    page = desk.get(f"runs/{run}/time?point=2").text
    assert 'type="range" id="point" name="point" min="0" max="4" value="2"' in page
    assert "Expanding pairs of brackets" in page
    between = desk.data(f"runs/{run}/time?at={sow['at'] + 1}")
    assert (between["point"], between["made"]) == (2, None)
    assert "after sow" in desk.get(f"runs/{run}/time?at={sow['at'] + 1}").text
    assert desk.get(f"runs/{run}/time?at=nowhere").status == 404
    assert desk.get("runs/20200101_000000/time").status == 404


def test_differences_to_another_point_or_run(desk: Served, run: str, root: Path) -> None:
    seed = desk.data(f"runs/{run}/time?at=seed")["at"]
    got = desk.data(f"runs/{run}/time?at=sow&with=@{seed}")["differs"]
    assert [step["statuses"] for step in got["steps"] if step["step"] == "sow"] == [["completed", None]]
    other = desk.data(f"runs/{run}/time?at=end&other={run}@end")["differs"]
    assert other["same"]
    assert "All results are the same" in desk.get(f"runs/{run}/time?other={run}").text
    page = desk.get(f"runs/{run}/time?at=sow&other=20200101_000000@sow")
    assert page.status == 200
    assert "20200101_000000" in page.text.partition("What differs")[2]


def test_fork_is_planned_made_and_goes_on(desk: Served, root: Path, tmp_path: Path) -> None:
    store, url = open_store(f"files:{root}"), f"files:{root}"
    (tmp_path / "tools.dot").write_text(TOOLS)
    run = start(["run", str(tmp_path / "tools.dot"), "--param=reader=Ann", "--allow-tools", "--yes"], url).run
    await_status(store, run, "completed")
    planned = desk.data(f"runs/{run}/time?at=hello&plan=1&set=params.reader%3DBob")["fork"]
    assert planned["plan"]["changed"][0] == {"name": "params.reader", "value": "Bob", "steps": ["start"], "items": []}
    assert planned["plan"]["expected_usd"] == 0
    assert "made again: start" in desk.get(f"runs/{run}/time?at=hello&plan=1&set=params.reader%3DBob").text
    unknown = desk.get(f"runs/{run}/time?at=hello&plan=1&set=raeder%3DBob").text
    assert "no step knew this name" in unknown
    assert "nothing finished has read it" not in unknown
    wrong = desk.post(f"runs/{run}/fork", [("at", "hello"), ("set", "settings.colour=blue"), ("do", "fork")])
    assert wrong.status == 400
    assert 'value="settings.colour=blue"' in wrong.text, "what was typed stays"
    assert len(list(store.heads())) == 1
    form = [("at", "hello"), ("set", "params.reader=Bob"), ("set", ""), ("do", "fork")]
    with ThreadPoolExecutor() as clicks:
        went, again = clicks.map(lambda _: desk.post(f"runs/{run}/fork", form), range(2))
    assert went.status == 303, went.text
    assert went.headers["location"] == again.headers["location"], "a double click makes one fork"
    assert len(list(store.heads())) == 2
    child = went.headers["location"].rpartition("/")[2]
    state = load(store, child)
    assert (state.parent or {})["run"] == run
    assert state.params["reader"] == "Bob"


def test_of_many_checkpoints_those_around_are_listed(desk: Served, root: Path) -> None:
    run = loop(Noted(), 150).run(store=open_store(f"files:{root}")).run_id
    got = desk.data(f"runs/{run}/time?point=75")
    assert (got["stops"], got["first"], len(got["points"]), got["stop"]["step"]) == (153, 25, 101, "x#75")
    page = desk.get(f"runs/{run}/time?point=75").text
    assert "25 to 125 of 152" in page
    assert 'max="152"' in page
