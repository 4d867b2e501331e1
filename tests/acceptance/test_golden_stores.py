"""Stores made by earlier code (tests/golden): they say what they said then, and what is half done is finished without
buying a recorded reply again."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import subprocess
import tarfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline import AnthropicModel, CheckpointStore, ControlledExecutor, LangGraphSaver
from pipeline.clock import SystemClock
from pipeline.records.fold import spent
from pipeline.records.run import Spend
from pipeline.store.reader import load
from pipeline.store.url import open_store
from tests.documents import DOCS
from tests.golden import books
from tests.said import Cli
from tests.servers import bill, models
from tests.servers.billing import BillingServer
from tests.servers.lessons import answer, task_data
from tests.servers.objects import Moto, environ
from tests.servers.objects import moto as moto
from tests.servers.postgres import Postgres
from tests.servers.postgres import postgres as postgres
from tests.servers.replies import Responder, echo

HERE = Path(books.__file__).parent
BOOK = f"{HERE / 'books.py'}:BOOK"
WAYS = str(HERE / "ways.dot")
#: What a store says of its runs that may not come out differently: the rest may gain names and lose riddles.
FIGURES = frozenset(
    {"run_id", "status", "status_detail", "steps_completed", "cost_usd", "possibly_usd", "unpriced_calls", "calls",
     "tokens", "key", "input_tokens", "output_tokens", "wasted_usd", "open_low_usd", "open_high_usd", "at_least_usd",
     "at_most_usd", "saved_cache_usd", "saved_batch_usd"}
)  # fmt: skip


@pytest.fixture
def responder() -> Responder:
    return lambda body, fault: answer(body, fault) if task_data(body) else echo(body, fault)


class Golden:
    """One store, unpacked where the command line finds it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.facts: dict[str, Any] = json.loads((home / "facts.json").read_text())
        self.url = f"sqlite:{home / 'runs.db'}" if (home / "runs.db").exists() else f"files:{home / 'store'}"

    @property
    def run(self) -> str:
        """The run that goes on: the newest."""
        return str(self.facts["list"][0]["run_id"])

    def spent(self) -> Spend:
        return spent(load(open_store(self.url, SystemClock()), self.run))


@pytest.fixture(params=["stores.tar.xz", "stores-2.tar.xz"], ids=["first", "second"])
def archive(request: pytest.FixtureRequest) -> Path:
    """Each time that stores were frozen."""
    return HERE / str(request.param)


@pytest.fixture
def golden(
    request: pytest.FixtureRequest, archive: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Golden:
    name = str(request.param)
    with tarfile.open(archive) as file:
        members = [member for member in file if member.name.partition("/")[0] == name]
        file.extractall(tmp_path, members, filter="data")
    made = Golden(tmp_path / name)
    if (made.home / "dump.sql").exists():
        made.url = _restored(request.getfixturevalue("postgres"), made.home / "dump.sql")
    if (made.home / "bucket").exists():
        made.url = _uploaded(request.getfixturevalue("moto"), made.home / "bucket", monkeypatch)
    monkeypatch.setenv("PIPELINE_STORE", made.url)
    if not made.url.startswith(("files:", "s3:")):
        assert cli("store", "upgrade").code == 0
    return made


def _restored(server: Postgres, dump: Path) -> str:
    url = server.database()
    words = ["-q", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(server.port), "-U", "tests"]
    subprocess.run([server._bin / "psql", *words, "-f", dump, "-d", url.rpartition("/")[2]], check=True, stdout=-3)
    return url


def _uploaded(server: Moto, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    import obstore

    for name, value in environ(server.endpoint).items():
        monkeypatch.setenv(name, value)
    name = server.bucket()
    bucket = obstore.store.S3Store(name, client_options={"allow_http": True})
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        obstore.put(bucket, str(path.relative_to(folder)), path.read_bytes())
    return f"s3://{name}/runs"


#: Half-done books, and how many requests each lacks; one of them was in flight when it was killed.
HALF_DONE = {
    "book_begun": 19, "book_half": 11, "book_sqlite": 11, "book_postgresql": 11, "book_objects": 11, "book_threads": 0,
    "book_parts": 0, "book_forked": 11, "book_again": 10,
}  # fmt: skip
SAME = [*HALF_DONE, "lessons_offline", "lessons_paid", "lessons_half", "lessons_redone", "lessons_damaged",
        "book_batch",
        "measured_unpriced", "account_cleaned", "dot_half", "layered", "agentos", "langgraph"]  # fmt: skip


def figures(said: Any) -> Any:
    """The figures of a JSON answer."""
    if isinstance(said, Mapping):
        return {key: value for key, value in said.items() if key in FIGURES}
    return [figures(row) for row in said]


@pytest.mark.parametrize("golden", ["book_half", "lessons_half"], indirect=True)
def test_golden_run_that_names_no_provider_is_anthropics(golden: Golden, cli: Cli, server: BillingServer) -> None:
    (line, *_) = cli("cost", "--by", "provider", "--json").json()
    assert line["key"] == "anthropic"
    again = ("run", BOOK) if "book" in golden.home.name else ("lessons",)
    said = cli(*again, "--resume", golden.run, "--provider", "bedrock")
    assert (said.code, "--provider anthropic" in said.err, server.bill.requests) == (2, True, 0), said.err
    said = cli(*again, "--resume", golden.run, "--provider", "anthropic")
    # The rest of an old course is written in today's form only where that is asked for.
    assert said.code == (0 if "book" in golden.home.name else 2), said.err
    assert "--provider" not in said.err
    if "book" in golden.home.name:
        assert server.bill.requests == HALF_DONE["book_half"]


@pytest.mark.parametrize("golden", SAME, indirect=True)
def test_golden_store_says_what_it_said_when_it_was_made(golden: Golden, cli: Cli) -> None:
    facts = golden.facts
    assert figures(cli("list", "--json").json()) == figures(facts["list"])
    runs = {None: facts["cost"], **{run: said["cost"] for run, said in facts.get("runs", {}).items()}}
    for run, then in runs.items():
        now = cli("cost", *([run] if run else []), "--json").json()
        if "lessons_damaged" in str(golden.home):
            # What a hole lost may be counted by now: no figure becomes less.
            assert now[-1]["at_least_usd"] >= then[-1]["at_least_usd"]
        else:
            assert figures(now) == figures(then)
    for run, then in facts.get("runs", {}).items():
        assert figures(cli("status", run, "--json").json()) == figures([then["status"]])


def asks(server: BillingServer) -> int:
    return server.bill.requests


def sums_up(golden: Golden, before: Spend, server: BillingServer) -> None:
    """What was known before, and what this server billed since; what was open before stays so."""
    now = golden.spent()
    assert now.usd == before.usd + server.bill.usd
    assert (now.low, now.high) == (before.low, before.high)


@pytest.mark.parametrize("golden", HALF_DONE, indirect=True)
def test_golden_book_is_finished_and_no_recorded_reply_is_bought_again(
    golden: Golden, cli: Cli, server: BillingServer, request: pytest.FixtureRequest
) -> None:
    before, lacks = golden.spent(), HALF_DONE[golden.home.name]
    said = cli("run", BOOK, "--resume", golden.run, "--json", "--concurrency", "1")
    assert said.code == 0, said.err
    sums_up(golden, before, server)
    if lacks:
        assert asks(server) == lacks
    else:
        # Of several at once it depends on the moment which were recorded; each has been asked but for those in flight.
        state = load(open_store(golden.url, SystemClock()), golden.run)
        assert asks(server) == 21 - (before.calls - len(state.open_calls))
    outputs = load(open_store(golden.url, SystemClock()), golden.run).steps["bind#1"].outputs
    title = "Skies" if "forked" in golden.home.name else "A title for a book of the sky"
    assert outputs == {
        "index": "Index: ['tides', 'moons', 'winds', 'stars']", "blurb": f"A blurb for {title}", "parts": 4,
    }  # fmt: skip


@pytest.mark.parametrize("golden", ["book_batch"], indirect=True)
def test_golden_batch_that_is_out_is_fetched(golden: Golden, cli: Cli, server: BillingServer) -> None:
    model = AnthropicModel(books.MODEL)
    for batch in golden.facts["batches"]:
        made = model._client.messages.batches.create(requests=batch["requests"])
        assert made.id == batch["id"]
    model.close()
    before, out = golden.spent(), 4
    said = cli("run", BOOK, "--resume", golden.run, "--batch", "--batch-min", "2", "--batch-poll", "0.02", "--json")
    assert said.code == 0, said.err
    now = golden.spent()
    assert (now.usd, now.low, now.high) == (before.usd + server.bill.usd, Decimal(0), Decimal(0))
    # The four drafts were out; whatever else the book asks is asked once.
    assert asks(server) == 21 - (before.calls - out)


#: What files in data/ have gained since.
_GAINED = frozenset({"$schema", "licence", "attribution"})


def check_published(golden: Golden, out: Path, *facts: str) -> None:
    """The same course stands there: its facts byte for byte, its lessons as today's pages need them."""
    found = {path.name: json.loads(path.read_bytes()) for path in out.glob("course_*/data/*.json")}
    assert found.keys() == golden.facts["published"].keys()
    for name, value in found.items():
        if name in ("course.json", "scheme.json", *facts):
            then = {key: each for key, each in value.items() if key not in _GAINED}
            data = (json.dumps(then, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode("ascii")
            assert hashlib.sha256(data).hexdigest() == golden.facts["published"][name], name
        elif name != "about.json":
            assert value["schema"] == 2


@pytest.mark.parametrize("golden", ["lessons_half", "lessons_redone"], indirect=True)
def test_golden_lessons_are_finished_and_publish_the_same_data(
    golden: Golden, cli: Cli, server: BillingServer, tmp_path: Path
) -> None:
    before = golden.spent()
    resume = ("lessons", "--resume", golden.run, "--out", str(tmp_path / "out"), "--yes", "--json")
    refused = cli(*resume)
    assert (refused.code, refused.json()[-1]["error"]["type"]) == (2, "SettingsConflict")
    assert "--accept-changes" in refused.err
    said = cli(*resume, "--accept-changes")
    assert said.code == 0, said.err
    sums_up(golden, before, server)
    # A lesson, its blind solution and its critic are one of today's, so none is half of an earlier form: half done
    # were the second and the third, redone one of which a critic was in flight.
    assert asks(server) == (6 if golden.home.name == "lessons_half" else 3)
    if golden.home.name == "lessons_half":
        check_published(golden, tmp_path / "out")


@pytest.mark.parametrize("golden", ["lessons_half"], indirect=True)
def test_golden_lessons_of_which_no_more_are_wanted_ask_nothing(
    golden: Golden, cli: Cli, server: BillingServer, tmp_path: Path
) -> None:
    said = cli("lessons", "--resume", golden.run, "--sample", "1", "--out", str(tmp_path / "out"), "--yes", "--json")
    assert said.json()[-1]["error"]["code"] == "stopped_as_asked", said.err
    assert asks(server) == 0


@pytest.mark.parametrize("golden", ["lessons_paid", "lessons_offline"], indirect=True)
def test_golden_lessons_that_are_complete_are_published_again_for_nothing(
    golden: Golden, cli: Cli, server: BillingServer, tmp_path: Path
) -> None:
    said = cli("lessons", "--resume", golden.run, "--out", str(tmp_path / "out"), "--json")
    assert said.code == 0, said.err
    assert asks(server) == 0
    check_published(golden, tmp_path / "out", "about.json")


@pytest.mark.parametrize("golden", ["measured_unpriced"], indirect=True)
def test_golden_run_with_unpriced_and_unknown_calls_goes_on(
    golden: Golden, cli: Cli, server: BillingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(models.MODELS, books.UNPRICED, models._model(books.UNPRICED))
    monkeypatch.setitem(bill.PRICES, books.UNPRICED, bill.PRICES[books.MODEL])
    before = golden.spent()
    said = cli("run", BOOK.replace(":BOOK", ":MEASURED"), "--resume", golden.run, "--max-cost-usd", "none", "--json")
    assert said.code == 0, said.err
    assert asks(server) == 1
    sums_up(golden, before, server)


@pytest.mark.parametrize("golden", ["dot_half", "dot_folder"], indirect=True)
def test_golden_graph_is_finished(golden: Golden, cli: Cli, server: BillingServer) -> None:
    place = golden.run if golden.facts["list"] else str(golden.home / "run")
    said = cli("run", WAYS, "--resume", place, "--json")
    assert said.code == 0, said.err
    # `first`, `a` and one more were answered; the rest is asked once.
    assert asks(server) == 2
    assert said.json()[-1]["status"] == "completed"


@pytest.mark.parametrize("golden", ["layered"], indirect=True)
def test_golden_layers_go_on_with_what_failed(golden: Golden, archive: Path, server: BillingServer) -> None:
    before, tool, model = golden.spent(), books.Tool(), AnthropicModel(books.MODEL)
    executor = ControlledExecutor(None, {"work": tool}, store=open_store(golden.url, SystemClock()), model=model)
    result = executor.resume_from_checkpoint(golden.facts["ids"]["run"])
    model.close()
    assert (result.status, tool.ran) == ("completed", ["c", "d"])
    # In the first its attempt was closed when it was recorded, so it is asked anew; since then its reply is kept.
    assert asks(server) == (2 if archive.name == "stores.tar.xz" else 1)
    sums_up(golden, before, server)


@pytest.mark.parametrize("golden", ["agentos"], indirect=True)
def test_golden_documents_are_as_they_were(golden: Golden) -> None:
    found = [CheckpointStore(open_store(golden.url, SystemClock())).load("their-run", node) for node in "ab"]
    assert [each.to_json() for each in found if each is not None] == golden.facts["documents"]


@pytest.mark.parametrize("golden", ["langgraph"], indirect=True)
def test_golden_thread_goes_on_at_its_question(golden: Golden) -> None:
    spec = importlib.util.spec_from_file_location("letters", DOCS / "examples" / "langgraph_graph.py")
    assert spec is not None
    assert spec.loader is not None
    graphs: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(graphs)
    from langgraph.types import Command

    async def go_on() -> Any:
        letters = graphs.graph(LangGraphSaver(golden.url))
        thread: Any = {"configurable": {"thread_id": "letter-1"}}
        asked = await letters.aget_state(thread)
        return asked, await letters.ainvoke(Command(resume="Mind the moon."), thread)

    asked, done = asyncio.run(go_on())
    assert asked.tasks[0].interrupts[0].value == golden.facts["question"]
    assert done["lines"] == ["Dear reader, tides matter.", "P.S. Mind the moon."]


@pytest.mark.parametrize("golden", [name for name in SAME if name.startswith("lessons_")], indirect=True)
def test_golden_course_is_exported_as_far_as_it_was_made(golden: Golden, cli: Cli, tmp_path: Path) -> None:
    said = cli("export", golden.run, "--to", "docx,pptx,imscc,csv", "--out", str(tmp_path / "out"), "--json")
    assert said.code == 0, said.err
    whole = said.json()[-1]
    assert whole["lessons"]
    assert {path.parent.name for path in (tmp_path / "out").glob("*/*")} == {"docx", "pptx", "imscc", "csv"}
