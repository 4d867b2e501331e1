"""Tables of older and newer versions, and what people query in them."""

from __future__ import annotations

import json
from decimal import Decimal

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
from pipeline.store.reading import load
from pipeline.store.sql import schema
from pipeline.store.sql.database import close_all
from pipeline.store.sql.store import SqlStore, open_sql
from tests.journals import AT, StillClock, line, small_run, started
from tests.layered import Layered, chain, dag
from tests.stores import ids, write


@pytest.fixture(params=["sqlite", "postgresql"])
def sql(request: pytest.FixtureRequest, make_store: object) -> SqlStore:
    store = make_store(request.param)  # type: ignore[operator]
    assert isinstance(store, SqlStore)
    return store


def older(store: SqlStore) -> str:
    """A database as the first version left it, with a run in it."""
    schema.upgrade(store.database, "0001")
    with store.database.write() as link:
        row = ("r1", "r1", "", "r1", 2, "")
        link.run("INSERT INTO journals (run, run_id, path, stem, width, claim) VALUES (?, ?, ?, ?, ?, ?)", *row)
        lines = [one.rstrip(b"\n") for one in small_run()]
        size = sum(len(one) + 1 for one in lines)
        link.run("INSERT INTO leases VALUES (1, 1, '', 0, ?, ?)", len(lines), size)
        link.run_many("INSERT INTO records VALUES (1, ?, ?)", list(enumerate(lines, 1)))
        link.run("INSERT INTO slices VALUES ('s', '2026-01-09', 'me', '1.5', 1)")
    return "r1"


def test_filled_older_database_is_refused_upgraded_and_read(sql: SqlStore) -> None:
    run = older(sql)
    with pytest.raises(StoreError, match="version 0001") as caught:
        list(sql.heads())
    assert f"store upgrade --store '{sql.url}'" in caught.value.hint
    assert sql.upgrade() == ("0001", schema.VERSIONS[-1])
    assert sql.upgrade() == (schema.VERSIONS[-1],) * 2
    assert ids(sql) == [run]
    assert next(sql.heads()).document["total_cost_usd"] == 1.85
    assert sql.account().total(AT.date()) == Decimal("1.5")
    with sql.database.read() as link:
        ((low, high),) = link.rows("SELECT low, high FROM charges")
    assert (Decimal(low), Decimal(high)) == (Decimal("1.85"), Decimal("1.85"))
    sql.open(run).close()


def test_newer_database_is_refused_by_every_way_in(sql: SqlStore) -> None:
    run = write(sql, small_run())
    with sql.database.write() as link:
        link.run("UPDATE alembic_version SET version_num = '9999'")
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
    sql: SqlStore, entered: list[str], named: str
) -> None:
    with sql.database.write() as link:
        link.run("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)")
        for version in entered:
            link.run("INSERT INTO alembic_version VALUES (?)", version)
    for way in (lambda: list(sql.heads()), lambda: sql.create(started(), [], at=AT), sql.upgrade):
        with pytest.raises(StoreError, match=f"another program's: their version is '{named}'") as caught:
            way()
        assert "that no other program uses" in caught.value.hint


def test_looking_makes_nothing(sql: SqlStore) -> None:
    assert ids(sql) == []
    assert sql.account().kept() == {}
    assert sql.database.address.file is None or not sql.database.address.file.exists()


def test_costs_and_runs_are_queried_exactly(sql: SqlStore) -> None:
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
    with sql.database.read() as link:
        costs = link.rows("SELECT * FROM costs_by_day")
        runs = link.rows("SELECT run_id, subject, status, records, owned FROM runs")
    assert [(str(day), model, calls, Decimal(low), opened) for day, model, calls, low, _, opened, _ in costs] == [
        ("2026-01-09", "mdel", 6, Decimal("0.7"), 0)
    ]
    assert costs[0][-1] == 1
    assert [tuple(row) for row in runs] == [(run, "mathematics", "in_progress", 14, 0)]


def test_checkpoints_of_layers_are_rows_until_they_are_pruned(sql: SqlStore) -> None:
    shelf = LayerCheckpoints(sql, clock=SystemClock())
    state = WorkflowState("w", messages=[{"text": "a\0b"}], context={"x": "\ud800"})
    made = [shelf.save_checkpoint(state, chain(1), layer, {"timeout": 30}) for layer in range(4)]
    newest = "SELECT * FROM workflow_checkpoints WHERE workflow_id = 'w' ORDER BY timestamp DESC, seq DESC"
    with sql.database.read() as link:
        rows = link.rows(newest)
        first = rows[0]
    assert [row[3] for row in rows] == [3, 2, 1, 0]
    assert first[0] == made[-1].id
    config = first[6] if isinstance(first[6], dict) else json.loads(first[6])
    assert config == {"timeout": 30}
    assert shelf.prune_old_checkpoints("w", 2) == 2
    with sql.database.read() as link:
        assert [row[3] for row in link.rows(newest)] == [3, 2]


def test_checkpoints_of_an_executor_are_rows_as_well(sql: SqlStore) -> None:
    work = Layered(sql)
    done = work.execute(chain(7), config={"keepCount": 3})
    assert done.status == "completed"
    sql_text = "SELECT id, workflow_id, layer_index, state, dag_structure, execution_config FROM workflow_checkpoints"
    with sql.database.read() as link:
        rows = link.rows(f"{sql_text} ORDER BY seq DESC")
    assert [row[2] for row in rows] == [7, 6, 5]
    listed = work.checkpoints.listed(done.run_id)
    assert [row[0] for row in rows] == [one["id"] for one in listed]
    state, dag, config = (part if isinstance(part, dict) else json.loads(part) for part in rows[0][3:])
    assert state == work.checkpoints.load(rows[0][0]).state.to_json() == done.state.to_json()
    assert [task["id"] for task in dag["tasks"]] == [f"t{n}" for n in range(1, 8)]
    assert config["keepCount"] == 3
    assert not list(check(sql, sql.account()))


def test_result_that_is_damaged_stops_no_run_for_what_is_shown(sql: SqlStore) -> None:
    work = Layered(sql)

    def damage(call: TaskCall) -> None:
        if call.id == "t2":
            with sql.database.write() as link:
                assert link.run("UPDATE blobs SET data = ? WHERE length(data) > 5000", b"junk") > 0

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


def test_texts_and_numbers_come_back_as_they_were(sql: SqlStore) -> None:
    document = {"a\0b": "\0ü\ud800", "n": 12345678901234567890, "usd": "0.10", "f": 1e300}
    run, journal = sql.create(started(), [], at=AT)
    journal.write_head({"run_id": run, "subject": "ma\0ths", **document, "seq": 1}, True)
    (head,) = sql.heads()
    assert {name: head.document[name] for name in document} == document
    with sql.database.read() as link:
        assert tuple(link.row("SELECT subject FROM runs")) == ("maths",)


def test_damaged_record_and_head_are_left_out_and_told(sql: SqlStore) -> None:
    run = write(sql, small_run())
    with sql.database.write() as link:
        link.run("UPDATE records SET line = ? WHERE seq = 3", b"no record")
        link.run("UPDATE journals SET head = ?", b"no head")
    assert len(list(sql.flaws(run))) == 2
    assert len(list(sql.read(run))) == len(small_run()) - 1
    assert next(sql.heads()).run_id == run


def test_damaged_value_is_named_and_stored_anew(sql: SqlStore) -> None:
    run, journal = sql.create(started(), [], at=AT)
    blob = journal.put_blob(b"lesson")
    with sql.database.write() as link:
        link.run("UPDATE blobs SET data = ?", b"junk")
    with pytest.raises(CheckpointCorrupt) as caught:
        sql.get_blob(run, blob)
    assert caught.value.data["blob"] == blob
    assert journal.put_blob(b"lesson") == blob
    assert sql.get_blob(run, blob) == b"lesson"
