"""The guide to costs: columns, states and the price file are those of the code."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.app.cost_documents import REASON_WORDS, report_json
from pipeline.app.cost_report import RepricedLine, Statement
from pipeline.cli.cost import lines_of
from pipeline.cost.ledger import COLUMNS as LEDGER_COLUMNS
from pipeline.cost.ledger import PRICE_COLUMNS, LedgerRow
from pipeline.cost.prices import PriceBook
from pipeline.cost.reconciliation import REASONS, Compared
from pipeline.cost.report import COLUMNS, CSV_COLUMNS, GROUPS, NOWHERE, Origin, Posting, of_ledger, of_sums, report
from pipeline.engine.retry import RetryPolicy
from pipeline.engine.store_limits import _MOST_USD, _PART
from pipeline.llm.base import ADDED_TOKENS, BLOCK_TOKENS, SCHEMA_TOKENS
from pipeline.records.charge import EXACT, INTERVAL, TOKEN_KINDS, UNPRICED
from pipeline.records.money import CAUSES, OPEN, USED
from pipeline.records.run import Spend
from pipeline.settings import ASK_ABOVE_USD, DEFAULT_CEILING_USD
from tests.documents import DOCS, ROOT, codes, fenced, table, text_of

GUIDE = "costs.md"
AT = datetime(2026, 11, 28, tzinfo=UTC)


def test_docs_name_states_causes_reasons_and_groupings() -> None:
    assert {codes(row[0])[0] for row in table(GUIDE, "State", "Means")} == {EXACT, INTERVAL, OPEN, UNPRICED}
    assert [codes(row[0])[0] for row in table(GUIDE, "Cause", "Means")] == list(CAUSES)
    assert [codes(row[0])[0] for row in table(GUIDE, "Reason", "Explains")] == list(REASONS) == list(REASON_WORDS)
    assert f"`--by {'|'.join(GROUPS)}`" in text_of(GUIDE)


def test_docs_name_the_columns_of_the_ledger_and_of_the_sums() -> None:
    ledger = codes(text_of(GUIDE).partition("With `--by call`, the ledger itself: ")[2])
    assert ledger[: len(LEDGER_COLUMNS) + 1] == ["run_id", *LEDGER_COLUMNS]
    sums = codes(text_of(GUIDE).partition("has stable columns; new ones are added at the end. Sums: ")[2])
    assert sums[: len(CSV_COLUMNS)] == list(CSV_COLUMNS)


def test_docs_show_the_columns_of_the_table() -> None:
    heads = [row.split() for row in text_of(GUIDE).splitlines() if {"Wasted", "Possibly"} <= {*row.split()}]
    titles = " ".join(column.title for column in COLUMNS if column.title).split()
    assert len(heads) >= 3
    assert all(head[-len(titles) :] == titles for head in heads)


def test_docs_name_the_fields_of_repriced_and_reconciled_lines() -> None:
    named = codes(text_of(GUIDE).partition("With `--reprice`: ")[2].partition("With `--plot`")[0])
    fields_of = [*RepricedLine("k", 1, Decimal(1), Decimal(2)).to_json(), *Compared("2026-01-09", "m").to_json()]
    assert set(fields_of) <= set(named)


def test_docs_name_the_objects_of_cost_json() -> None:
    documented = {codes(row[0])[0]: codes(row[2]) for row in table(GUIDE, "Type", "One for each")}
    row = LedgerRow(1, "", "lessons", "7", 1, 1, 1, "lesson", "m")
    summed = of_sums([{"calls": 1, "outcome": OPEN}], Origin("s"))
    postings = [*of_ledger([row], Origin("r")), *summed]
    statement = Statement(postings, {"i": Decimal(1)}, {"gone": Decimal(1)}, {"bad": "why"})
    objects, calls = (
        {
            line["type"]: [name for name in line if name != "type"]
            for line in report_json(statement, report(statement.postings, by))
        }
        for by in ("step", "call")
    )
    for kind in ("line", "open_run", "imported", "removed", "unread"):
        assert documented[kind] == objects[kind]
    assert set(documented) == set(objects) | set(calls)
    own = [name for name in LEDGER_COLUMNS if name not in (*TOKEN_KINDS, "web_search", *PRICE_COLUMNS)]
    assert set(calls["call"]) == {"run_id", *own, "tokens", "prices"}
    assert objects["open"] == calls["call"]
    assert set(objects["total"]) == {*objects["line"], "at_least_usd", "at_most_usd"} - {"by"}


@pytest.mark.parametrize("document", [ROOT / "README.md", DOCS / GUIDE])
def test_docs_show_the_table_of_a_course_as_the_program_prints_it(document: Path) -> None:
    sample = document.read_text(encoding="utf-8").partition("$ ./pipeline.sh cost latest\n")[2].splitlines()
    postings = []
    for line in sample[2:4]:
        step, calls, read, written, usd = line.replace(",", "").replace("$", "").split()
        spend = Spend(int(calls), {"input": int(read), "output": int(written)}, usd=Decimal(usd))
        postings.append(Posting(NOWHERE, step, "", "", "", USED, "", spend))
    shown = next(lines_of(Statement(postings), report(postings)))
    assert shown.splitlines() == sample[:5]


def test_docs_price_file_can_be_used(tmp_path: Path) -> None:
    (text,) = fenced(GUIDE, "toml")
    path = tmp_path / "prices.toml"
    path.write_text(text, encoding="utf-8")
    charge = PriceBook(path).charge({"input_tokens": 1000, "output_tokens": 10}, model="claude-mythos-5", at=AT)
    assert (charge.state, charge.low) == (EXACT, Decimal("0.0105"))
    long = PriceBook(path).charge(
        {"input_tokens": 100_001, "output_tokens": 0}, model="claude-mythos-5-20260101", at=AT
    )
    assert long.low == Decimal("5.00005")


def test_docs_say_the_limits_of_the_code() -> None:
    text = text_of(GUIDE)
    assert (Decimal(20), Decimal(1)) == (1 / _PART, _MOST_USD)
    assert "a twentieth of the limit at a time and at most $1" in text
    assert f"{ADDED_TOKENS} tokens, {BLOCK_TOKENS} for each turn and each part of the system prompt" in text
    assert f"and {SCHEMA_TOKENS:,} where the answer has a schema" in text
    assert f"`--max-cost-usd` (default {DEFAULT_CEILING_USD}," in text
    assert f"asks when more than ${ASK_ABOVE_USD} is expected" in text
    (row,) = [row for row in table("errors.md", "Class", "Exit") if row[0] == "`ModelUnavailable`"]
    policy = RetryPolicy()
    assert f"after {policy.tries} tries of a call, or a wait above {policy.patience_seconds / 60:.0f} minutes" in row[2]
