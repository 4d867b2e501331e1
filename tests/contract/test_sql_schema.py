"""Tables of older and newer versions, and what people query in them."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline import ControlledExecutor
from pipeline.clock import SystemClock
from pipeline.errors import CheckpointCorrupt, SchemaTooNew, StoreError
from pipeline.formats.casys.checkpoints import LayerCheckpoints
from pipeline.formats.casys.state import WorkflowState
from pipeline.formats.casys.tools import TaskCall
from pipeline.records.charge import Charge
from pipeline.records.kinds import CallEnded, CallStarted, ChargeSettled
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import digest
from pipeline.store.integrity import check
from pipeline.store.reader import load
from pipeline.store.runs import RunStore
from pipeline.store.sql.backend import open_sql
from pipeline.store.sql.connections import close_all
from tests.contract import harm
from tests.journals import AT, StillClock, line, small_run, started
from tests.layered import Layered, chain, dag
from tests.stores import ids, write


def older(store: RunStore, version: str) -> None:
    """A database with the tables of another version."""
    harm.change(store, "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    harm.change(store, f"INSERT INTO alembic_version VALUES ('{version}')")


def test_older_database_is_refused_with_the_command_that_brings_it_along(sql: RunStore) -> None:
    older(sql, "0005")
    for way in (lambda: list(sql.heads()), lambda: sql.create(started(), [], at=AT), sql.account().kept):
        with pytest.raises(StoreError, match="version 0005") as caught:
            way()
        assert caught.value.code == "schema_too_old"
        assert f"store upgrade --store '{sql.url}'" in caught.value.hint


def test_database_of_an_early_version_needs_an_earlier_release_first(sql: RunStore) -> None:
    older(sql, "0003")
    with pytest.raises(StoreError) as caught:
        sql.upgrade()
    assert caught.value.code == "schema_too_old"
    assert "An earlier release" in caught.value.hint


def test_newer_database_is_refused_by_every_way_in(sql: RunStore) -> None:
    run = write(sql, small_run())
    harm.change(sql, "UPDATE pipeline_meta SET version = '9999'")
    url = sql.url
    close_all()
    again = open_sql(url, StillClock())
    for way in (
        lambda: list(again.heads()),
        lambda: again.open(run),
        lambda: again.create(started(), [], at=AT),
        lambda: again.account().kept(),
        again.upgrade,
    ):
        with pytest.raises(SchemaTooNew, match="9999"):
            way()


@pytest.mark.parametrize(("entered", "named"), [(["3f2a9b"], "3f2a9b"), ([], "none")])
def test_tables_of_another_program_are_told_apart_from_newer_ones(
    sql: RunStore, entered: list[str], named: str
) -> None:
    harm.change(sql, "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
    for version in entered:
        harm.change(sql, "INSERT INTO alembic_version VALUES (?)", version)
    for way in (lambda: list(sql.heads()), lambda: sql.create(started(), [], at=AT), sql.upgrade):
        with pytest.raises(StoreError, match=f"another program's: their version is '{named}'") as caught:
            way()
        assert "that no other program uses" in caught.value.hint


def test_looking_makes_nothing_nor_does_the_upgrade_of_a_mistyped_name(sql: RunStore) -> None:
    assert ids(sql) == []
    assert sql.account().kept() == {}
    if harm.is_file(sql):
        with pytest.raises(StoreError) as caught:
            sql.upgrade()
        assert caught.value.code == "no_store"
    assert not harm.is_file(sql) or not Path(sql.url.removeprefix("sqlite:")).exists()


def test_costs_and_runs_are_queried_exactly(sql: RunStore) -> None:
    tenth = Charge("exact", Decimal("0.1"), Decimal("0.1")).to_json()
    lines = [started()]
    for call in range(2, 12, 2):
        lines.append(line(call, CallStarted("sow#1", "key", "m\0del", "blob", worst="0.5")))
        charge = {"state": "unpriced"} if call == 10 else tenth
        lines.append(line(call + 1, CallEnded(call, None, charge)))
    lines.append(line(12, CallStarted("sow#1", "key", "mdel", "blob", worst="0.5")))
    lines.append(line(13, CallStarted("sow#1", "key", "other", "blob", origin="part:2")))
    lines.append(line(14, ChargeSettled(12, "0.3")))
    run = write(sql, lines)
    costs = harm.rows(sql, "SELECT * FROM costs_by_day")
    runs = harm.rows(sql, "SELECT run_id, subject, status, records, owned FROM runs")
    assert [(str(day), model, calls, Decimal(low), opened) for day, model, calls, low, _, opened, _ in costs] == [
        ("2026-01-09", "mdel", 6, Decimal("0.7"), 0)
    ]
    assert costs[0][-1] == 1
    assert [tuple(row) for row in runs] == [(run, "mathematics", "in_progress", 14, 0)]


def test_checkpoints_of_layers_are_rows_until_they_are_pruned(sql: RunStore) -> None:
    shelf = LayerCheckpoints(sql, clock=SystemClock())
    state = WorkflowState("w", messages=[{"text": "a\0b"}], context={"x": "\ud800"})
    made = [shelf.save_checkpoint(state, chain(1), layer, {"timeout": 30}) for layer in range(4)]
    newest = "SELECT * FROM workflow_checkpoints WHERE workflow_id = 'w' ORDER BY timestamp DESC, seq DESC"
    rows = harm.rows(sql, newest)
    first = rows[0]
    assert [row[3] for row in rows] == [3, 2, 1, 0]
    assert first[0] == made[-1].id
    config = first[6] if isinstance(first[6], dict) else json.loads(first[6])
    assert config == {"timeout": 30}
    assert shelf.prune_old_checkpoints("w", 2) == 2
    assert [row[3] for row in harm.rows(sql, newest)] == [3, 2]


def test_checkpoints_of_an_executor_are_rows_as_well(sql: RunStore) -> None:
    work = Layered(sql)
    done = work.execute(chain(7), config={"keepCount": 3})
    assert done.status == "completed"
    sql_text = "SELECT id, workflow_id, layer_index, state, dag_structure, execution_config FROM workflow_checkpoints"
    rows = harm.rows(sql, f"{sql_text} ORDER BY seq DESC")
    assert [row[2] for row in rows] == [7, 6, 5]
    listed = work.checkpoints.listed(done.run_id)
    assert [row[0] for row in rows] == [one["id"] for one in listed]
    state, dag, config = (part if isinstance(part, dict) else json.loads(part) for part in rows[0][3:])
    assert state == work.checkpoints.load(rows[0][0]).state.to_json() == done.state.to_json()
    assert [task["id"] for task in dag["tasks"]] == [f"t{n}" for n in range(1, 8)]
    assert config["keepCount"] == 3
    assert not list(check(sql, sql.account()))


def test_result_that_is_damaged_stops_no_run_for_what_is_shown(sql: RunStore) -> None:
    work = Layered(sql)

    def damage(call: TaskCall) -> None:
        if call.id == "t2":
            harm.values(sql, ids(sql)[0], b"junk", longer=5000)

    long = "".join(digest(b"%d" % number) for number in range(1000))
    # Nobody reads the result of the first but whoever shows it, and in the end the one who is given it.
    plan = dag("t1:", "t2:", "t3: t2", "t4: t3")
    work.meanwhile = damage
    executor = ControlledExecutor(
        plan, {"work": lambda call: {"text": long} if call.id == "t1" else work.work(call)}, store=sql,
        config={"maxParallel": 1},
    )  # fmt: skip
    with pytest.raises(CheckpointCorrupt, match="missing or damaged"):
        executor.execute()
    (run,) = ids(sql)
    assert load(sql, run).status == COMPLETED
    assert len(work.checkpoints.listed(run)) == 3


def test_texts_and_numbers_come_back_as_they_were(sql: RunStore) -> None:
    document = {"a\0b": "\0ü\ud800", "n": 12345678901234567890, "usd": "0.10", "f": 1e300}
    run, journal = sql.create(started(), [], at=AT)
    journal.write_head({"run_id": run, "subject": "ma\0ths", **document, "seq": 1}, True)
    (head,) = sql.heads()
    assert {name: head.document[name] for name in document} == document
    assert harm.rows(sql, "SELECT subject FROM runs") == [("maths",)]


def test_damaged_record_and_head_are_left_out_and_told(sql: RunStore) -> None:
    run = write(sql, small_run())
    harm.record(sql, run, 3, b"no record")
    harm.head(sql, run, b"no head")
    assert len(list(sql.flaws(run))) == 2
    assert len(list(sql.read(run))) == len(small_run()) - 1
    assert next(sql.heads()).run_id == run
