"""`--provider`, `--base-url` and `--model FILE.py:NAME` as people type them, against stub servers of each path."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.providers import PROVIDERS
from pipeline.store.reader import load
from pipeline.store.url import open_store
from tests.contract.models import KEYS, model_id, variables
from tests.documents import DOCS
from tests.said import Cli
from tests.servers.admin import KEY, AdminServer
from tests.servers.billing import BillingServer
from tests.servers.platforms import PlatformServer

EXAMPLES = DOCS / "examples"
POSTCARDS = f"{EXAMPLES / 'postcards.py'}:PIPELINE"
TOWNS = 'towns=["Oban","Nairn"]'
SCRIPTED = f"{EXAMPLES / 'scripted_model.py'}:MODEL"
COURSE = ("lessons", "--subject", "mathematics", "--level", "national_5", "--lessons", "2")


@pytest.fixture
def front() -> Iterator[PlatformServer]:
    with BillingServer() as behind, PlatformServer(behind) as server:
        yield server


def set_up(name: str, front: PlatformServer, monkeypatch: pytest.MonkeyPatch, folder: Path) -> tuple[str, ...]:
    """Set what a provider needs; return the options that ask it."""
    for variable, value in variables(name, front.url, folder).items():
        monkeypatch.setenv(variable, value)
    return ("--provider", name, *(("--model", model_id(name)) if name == "openai" else ()))


def ledger(cli: Cli) -> list[dict[str, object]]:
    rows = cli("cost", "latest", "--by", "call", "--json").json()
    return [row for row in rows if "provider" in row]


@pytest.mark.parametrize("name", sorted(set(PROVIDERS) - {"anthropic"}))
def test_run_asks_the_provider_and_resumes_there_with_nothing_bought_twice(
    name: str, cli: Cli, root: Path, front: PlatformServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = set_up(name, front, monkeypatch, tmp_path)
    front.behind.plan.queue(None, "forbidden")
    said = cli("run", POSTCARDS, "--param", TOWNS, *options, "--concurrency", "1")
    assert said.code == 4, said.err
    assert front.behind.bill.requests == 2
    assert cli("run", POSTCARDS, "--resume", "latest").code == 0
    bills = [entry.usd for entry in front.behind.bill.entries()]
    assert (len(bills), len([usd for usd in bills if usd])) == (4, 3)
    state = load(open_store(f"files:{root}"), cli("list", "--json").json()[0]["run_id"])
    assert state.identity["provider"] == name
    rows = ledger(cli)
    assert [row["provider"] for row in rows] == [name] * 4
    assert [bool(row["usd"]) for row in rows] == [True, False, True, True]
    shown = cli("cost", "latest", "--by", "provider").out
    assert name in shown
    held = "".join(path.read_text(errors="replace") for path in root.rglob("*") if path.is_file())
    assert not [key for key in KEYS.values() if key in held + said.out + said.err]
    # Another provider is another run.
    other = cli("run", POSTCARDS, "--resume", "latest", "--provider", "anthropic")
    assert (other.code, f"--provider {name}" in other.err) == (2, True), other.err


def test_what_a_provider_lacks_is_refused_at_plan_time_with_what_to_do_instead(
    cli: Cli, root: Path, front: PlatformServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = set_up("bedrock", front, monkeypatch, tmp_path)
    commands: tuple[tuple[str, ...], ...] = (
        ("run", POSTCARDS, "--param", TOWNS), (*COURSE, "--yes"), (*COURSE, "--dry-run"),
        ("run", POSTCARDS, "--dry-run"),
    )  # fmt: skip
    for command in commands:
        for more, instead in ((("--batch",), "anthropic, aws or google-cloud"), (("--budget", "estimate"), "vertex")):
            said = cli(*command, *options, *more)
            assert (said.code, "Amazon Bedrock" in said.err, instead in said.err) == (2, True, True), said.err
    for name in ("bedrock-mantle", "vertex", "foundry", "openai"):
        said = cli(*COURSE, "--dry-run", "--provider", name, "--model", "claude-sonnet-5-5", "--batch")
        assert (said.code, "takes no Message Batches" in said.err) == (2, True), said.err
    assert (front.behind.bill.requests, root.exists()) == (0, False)


def test_model_of_another_provider_is_refused_by_the_plan_too_unless_a_gateway_is_named(cli: Cli) -> None:
    said = cli(*COURSE, "--dry-run", "--model", "llama3.2")
    assert (said.code, "--base-url" in said.err, "--provider openai" in said.err) == (2, True, True), said.err
    assert cli(*COURSE, "--dry-run", "--model", "llama3.2", "--base-url", "http://127.0.0.1:9").code == 0


def test_plan_and_ceiling_use_the_providers_prices(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def expected(*options: str) -> Decimal:
        (row,) = cli(*COURSE, "--model", "claude-sonnet-5-5", "--dry-run", "--json", *options).json()
        return Decimal(str(row["expected_usd"]))

    plain = expected()
    assert expected("--provider", "bedrock") == plain
    assert round(expected("--provider", "bedrock-mantle") / plain, 6) == Decimal("1.1")
    (row,) = cli(*COURSE, "--provider", "openai", "--model", "gpt-5-mini", "--dry-run", "--json").json()
    assert 0 < row["expected_usd"] < plain
    assert row["ways"]["batch"] is None
    monkeypatch.setenv("PIPELINE_PROVIDER", "bedrock-mantle")
    assert round(expected() / plain, 6) == Decimal("1.1")


def test_unpriced_model_is_refused_under_a_ceiling_and_free_only_where_the_price_file_says_zero(
    cli: Cli, front: PlatformServer, tmp_path: Path
) -> None:
    front.listed = ["llama3.2"]
    local = ("--provider", "openai", "--base-url", f"{front.url}/openai/v1", "--model", "llama3.2")
    said = cli("run", POSTCARDS, "--param", TOWNS, *local)
    assert (said.code, "No price is known for llama3.2" in said.err) == (5, True), said.err
    assert front.behind.bill.requests == 0
    file = tmp_path / "prices.json"
    kinds = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
    file.write_text(json.dumps({"models": {"llama3.2": dict.fromkeys(kinds, 0)}}))
    said = cli("run", POSTCARDS, "--param", TOWNS, *local, "--prices", str(file))
    assert said.code == 0, said.err
    assert "Cost: $0.00" in said.out
    said = cli("run", POSTCARDS, "--param", TOWNS, *local, "--max-cost-usd", "none")
    assert said.code == 0, said.err
    assert "unpriced" in cli("cost", "latest", "--by", "call").out
    # The endpoint is the run's: a resume asks it without being told.
    assert cli("run", POSTCARDS, "--resume", "latest").code == 0


def test_address_with_a_credential_is_refused_and_a_typing_slip_gets_the_nearest_name(cli: Cli, root: Path) -> None:
    odd = ("127.0.0.1/v1", "ftp://127.0.0.1", "http://127.0.0.1:99999/v1")
    for url in ("http://me:secret@127.0.0.1/v1", "http://127.0.0.1/v1?key=secret", *odd):
        said = cli("run", POSTCARDS, "--param", TOWNS, "--base-url", url)
        assert (said.code, "--base-url" in said.err, "secret" in said.err) == (2, True, False)
    said = cli("run", POSTCARDS, "--param", TOWNS, "--provider", "bedrok")
    assert (said.code, "bedrock" in said.err) == (2, True)
    said = cli("run", POSTCARDS, "--param", TOWNS, "--provider", "openai")
    assert (said.code, "--model NAME" in said.err) == (2, True)
    assert not root.exists()


@pytest.mark.parametrize("name", ["bedrock", "vertex", "foundry", "aws", "openai"])
def test_login_that_is_missing_says_what_to_set_before_anything_is_recorded(
    name: str, cli: Cli, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in [each for each in os.environ if each.startswith(("AWS_", "GOOGLE_", "CLOUD_ML_"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    said = cli("run", POSTCARDS, "--param", TOWNS, "--provider", name, "--model", model_id(name))
    assert said.code == 2, said.err
    assert any(word in said.err for word in PROVIDERS[name].login.split() if word.isupper())
    assert not root.exists()


def test_scripted_model_of_ones_own_runs_every_example_without_a_key_and_is_named_again(cli: Cli, root: Path) -> None:
    said = cli("run", POSTCARDS, "--param", TOWNS, "--model", SCRIPTED)
    assert said.code == 0, said.err
    assert "Wish you were here." in cli("show", "latest", "write").out
    assert [row["provider"] for row in ledger(cli)] == ["own"] * 3
    state = load(open_store(f"files:{root}"), cli("list", "--json").json()[0]["run_id"])
    assert (state.identity["provider"], state.identity["model"]) == ("own", "scripted")


def test_resume_names_its_own_model_again_and_prints_how(cli: Cli, tmp_path: Path) -> None:
    broken = tmp_path / "own.py"
    broken.write_text(
        "from pipeline import ScriptedModel\nfrom pipeline.errors import ModelRejected\n"
        "FAILS = ScriptedModel(lambda request: ModelRejected('no'), provider='own')\n"
        "WORKS = ScriptedModel(lambda request: 'yes', provider='own')\n"
        "def make():\n    return WORKS\n"
        "NOTHING = 3\n"
        "class Raises(ScriptedModel):\n    def check(self):\n        raise KeyError('lost')\n"
        "class Says(ScriptedModel):\n    def check(self):\n        return 'fine'\n"
        "RAISES, SAYS = Raises([]), Says([])\n"
        "def needs(key):\n    return WORKS\n"
    )
    said = cli("run", POSTCARDS, "--param", TOWNS, "--model", f"{broken}:FAILS")
    assert said.code != 0
    assert f"--model {broken}:FAILS" in said.err
    said = cli("run", POSTCARDS, "--resume", "latest")
    assert (said.code, f"--model {broken}:FAILS" in said.err) == (2, True), said.err
    assert cli("run", POSTCARDS, "--resume", "latest", "--model", f"{broken}:make").code == 0
    for name, told in (
        (":NOTHING", "no check()"), (":ABSENT", "no check()"), (":RAISES", "its check() raised KeyError: 'lost'"),
        (":SAYS", "its check() returned a str"), (":needs", "calling it raised TypeError"), (":", "NAME"), ("", "NAME"),
    ):  # fmt: skip
        said = cli("run", POSTCARDS, "--param", TOWNS, "--model", f"{broken}{name}")
        assert (said.code, f"{broken}{name} is no Model" in said.err, told in said.err) == (2, True, True), said.err


def test_model_of_ones_own_that_cannot_be_closed_spoils_no_run(cli: Cli, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "from pipeline import ScriptedModel\n"
        "class Sticks(ScriptedModel):\n    def close(self):\n        raise OSError('stuck')\n"
        "MODEL = Sticks(lambda request: 'yes', provider='own')\n"
    )
    said = cli("run", POSTCARDS, "--param", TOWNS, "--model", f"{own}:MODEL")
    assert (said.code, "close() failed: OSError" in said.out + said.err) == (0, True), said.err


def test_lessons_are_written_by_a_model_of_ones_own(cli: Cli, root: Path, tmp_path: Path) -> None:
    own = tmp_path / "author.py"
    own.write_text(
        "from pipeline import ScriptedModel\n"
        "from pipeline.llm.anthropic import parameters\n"
        "from tests.servers.lessons import answer\n"
        "MODEL = ScriptedModel(lambda request: answer(parameters(request, 'm', dict), ''), provider='own')\n"
    )
    said = cli(*COURSE, "--model", f"{own}:MODEL", "--out", str(tmp_path / "site"), "--until", "lessons")
    assert said.code == 0, said.err
    assert cli("lessons", "--resume", "latest").code == 0, "it is only to be published"
    assert f"Name it again: --model {own}:MODEL" in cli("redo", "latest", "lessons/1").err
    assert (tmp_path / "site" / "course_c84775" / "index.html").exists()
    again = cli(*COURSE, "--model", f"{own}:MODEL", "--out", str(tmp_path / "site"))
    assert (again.code, "complete" in again.out.lower()) == (0, True)


def test_old_run_without_a_provider_is_anthropics_and_resumes_with_nothing_bought_twice(
    cli: Cli, root: Path, front: PlatformServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_up("anthropic", front, monkeypatch, tmp_path)
    said = cli("run", POSTCARDS, "--param", TOWNS)
    assert said.code == 0, said.err
    run = cli("list", "--json").json()[0]["run_id"]
    journal = (root / run / "journal.jsonl").read_text()
    # As versions wrote it that knew no other: no call names its provider.
    assert all("provider" not in line for line in journal.splitlines() if '"kind":"call_started"' in line)
    bought = front.behind.bill.requests
    assert cli("run", POSTCARDS, "--resume", run, "--provider", "anthropic").code == 0
    assert front.behind.bill.requests == bought
    assert [row["provider"] for row in ledger(cli)] == ["anthropic"] * 3


def test_what_another_provider_billed_is_not_looked_for_in_anthropics_reports(
    cli: Cli, front: PlatformServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    options = set_up("bedrock", front, monkeypatch, tmp_path)
    front.behind.plan.queue("drop")
    assert cli("run", POSTCARDS, "--param", TOWNS, *options).code == 0
    with AdminServer() as reports:
        monkeypatch.setenv("ANTHROPIC_ADMIN_KEY", KEY)
        monkeypatch.setenv("ANTHROPIC_BASE_URL", reports.url)
        said = cli("cost", "--reconcile", "--json")
        assert said.code == 0, said.err
        assert not [line for line in said.json() if line["type"] == "reconciled"]
        settled = cli("settle", "latest", "--reconcile", "--yes")
        assert "Traceback" not in settled.err


def test_model_of_ones_own_is_named_once_by_the_command_that_resumes_a_graph(cli: Cli, tmp_path: Path) -> None:
    graph = tmp_path / "asks.dot"
    graph.write_text(
        "digraph Asks { start [shape=Mdiamond]; work [prompt=hello]; ask [shape=hexagon, label=Go];"
        " end [shape=Msquare]; start -> work -> ask; ask -> end [label=yes]; }"
    )
    said = cli("run", str(graph), "--model", SCRIPTED)
    assert said.code == 8, said.err
    assert said.err.rstrip().endswith(f" --model {SCRIPTED}")
    assert said.err.count(" --model ") == 1
