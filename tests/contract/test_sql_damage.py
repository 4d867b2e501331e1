"""What somebody can do to the rows of a database: each damage is named with its run, and nothing trips over it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline import LayerCheckpoints, WorkflowState
from pipeline.errors import CheckpointCorrupt, StoreError
from pipeline.records.kinds import CallStarted, StepStarted
from pipeline.store.base import Claim
from pipeline.store.integrity import check
from pipeline.store.sql.store import SqlStore
from tests.journals import AT, line, small_run, started
from tests.layered import chain
from tests.stores import ids, write

CLAIM = Claim("lessons", "mathematics", "national_5", "offline")


@pytest.fixture(params=["sqlite", "postgresql"])
def sql(request: pytest.FixtureRequest, make_store: Callable[[str], SqlStore]) -> SqlStore:
    return make_store(request.param)


def said(store: SqlStore) -> list[tuple[str, str]]:
    return [(problem.run, problem.text) for problem in check(store, store.account()) if problem.serious]


def sound(store: SqlStore) -> str:
    """A run of which everything is there."""
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    blob = journal.put_blob(b"request")
    lines[4] = line(5, CallStarted("sow#1", "key", "claude-sonnet-5-5", blob, worst="2.00"))
    journal.append(2, lines[1:])
    journal.close()
    assert said(store) == []
    return run


def change(store: SqlStore, statement: str, *values: object) -> None:
    with store.database.write() as link:
        assert link.run(statement, *values) > 0


@pytest.mark.parametrize(
    ("statement", "values", "words"),
    [
        ("UPDATE records SET line = ? WHERE seq = 4", [b"junk"], "Record 4 is damaged (4 bytes)."),
        ("DELETE FROM records WHERE seq = 4", [], "Record 4 is missing from the journal"),
        ("UPDATE records SET seq = 99 WHERE seq = 4", [], "Record 99 holds record 4."),
        ("UPDATE records SET seq = 0 WHERE seq = 4", [], "Record 0 holds record 4."),
        ("UPDATE records SET line = ? WHERE seq = 1", [b"junk"], "It cannot be resumed."),
        ("INSERT INTO records SELECT journal, 8, ? FROM journals", [b"{}"], "Record 8 is damaged (2 bytes)."),
        ("UPDATE journals SET head = ?", [b"{}"], "Its head is damaged; it is made afresh from the records."),
        ("DELETE FROM blobs", [], "is missing; a record refers to it."),
        ("UPDATE blobs SET data = ?", [b"junk"], "is damaged; a record refers to it."),
        ("DELETE FROM leases", [], "Its lease is missing; the next resume makes one."),
        (
            "UPDATE charges SET low = ?",
            ["0.10"],
            "Call 5 is exact, $0.10 to $1.85 in the table charges; its records say exact, $1.85.",
        ),
        ("DELETE FROM charges", [], "Call 5 is missing from the table charges; its record says exact, $1.85."),
        ("UPDATE charges SET call = 6", [], "Call 6 of the table charges is in no record (exact, $1.85)."),
    ],
)
def test_damage_is_named_with_its_run(sql: SqlStore, statement: str, values: list[object], words: str) -> None:
    run = sound(sql)
    change(sql, statement, *values)
    found = said(sql)
    assert [name for name, text in found if words in text] == [run], found
    assert {name for name, _ in found} == {run}
    # Whatever it is, the run is listed, and read as far as it goes.
    assert ids(sql) == [run]
    assert len(list(sql.read(run))) >= 6


@pytest.mark.parametrize(
    ("statement", "values", "words"),
    [
        ("DELETE FROM workflow_checkpoints WHERE layer_index = 1", [], "is missing from the table"),
        ("UPDATE workflow_checkpoints SET state = ? WHERE layer_index = 1", ["{}"], "is another in the table"),
        ("UPDATE workflow_checkpoints SET layer_index = 9 WHERE layer_index = 1", [], "is another in the table"),
        ("UPDATE workflow_checkpoints SET seq = 1 WHERE layer_index = 1", [], "is missing from the table"),
        (
            "INSERT INTO workflow_checkpoints SELECT 'x', workflow_id, timestamp, 9, state, dag_structure,"
            " execution_config, journal, 99 FROM workflow_checkpoints WHERE layer_index = 1",
            [],
            "is in no record, or was pruned",
        ),
    ],
)
def test_checkpoint_that_is_not_what_its_record_says_is_named_and_put_right(
    sql: SqlStore, statement: str, values: list[object], words: str
) -> None:
    shelf = LayerCheckpoints(sql)
    for layer in range(3):
        shelf.save_checkpoint(WorkflowState("w", context={"n": [1, 1.0, 1e300, 0.1, -0.0, 10**40]}), chain(1), layer)
    with sql.database.read() as link:
        before = link.rows("SELECT * FROM workflow_checkpoints ORDER BY seq")
    assert said(sql) == []
    change(sql, statement, *values)
    found = said(sql)
    assert any(words in text for _, text in found), found
    assert all(text.endswith("`store upgrade` puts it right.") for _, text in found)
    sql.upgrade()
    assert said(sql) == []
    with sql.database.read() as link:
        assert link.rows("SELECT * FROM workflow_checkpoints ORDER BY seq") == before


def test_checkpoint_whose_record_is_lost_stays_a_row(sql: SqlStore) -> None:
    shelf = LayerCheckpoints(sql)
    made = [shelf.save_checkpoint(WorkflowState("w"), chain(1), layer) for layer in range(2)]
    change(sql, "DELETE FROM records WHERE seq = ?", made[0].seq)
    assert not any("workflow_checkpoints" in text for _, text in said(sql))
    sql.upgrade()
    with sql.database.read() as link:
        assert [row[0] for row in link.rows("SELECT id FROM workflow_checkpoints ORDER BY seq")] == [
            one.id for one in made
        ]


def test_run_without_a_lease_is_owned_again_and_deleted(sql: SqlStore) -> None:
    run = sound(sql)
    change(sql, "DELETE FROM leases")
    journal = sql.open(run)
    assert journal._lease.epoch > 1000
    journal.close()
    assert said(sql) == []
    change(sql, "DELETE FROM leases")
    sql.delete(run)
    assert ids(sql) == []


@pytest.mark.parametrize("epoch", ["abc", 2**63 - 1, -1])
def test_lease_with_a_damaged_epoch_is_named_and_made_anew_once_it_is_gone(sql: SqlStore, epoch: object) -> None:
    run = sound(sql)
    if isinstance(epoch, str) and not sql.database.lite:
        pytest.skip("the column takes numbers only")
    change(sql, "UPDATE leases SET epoch = ?", epoch)
    assert [text for _, text in said(sql)] == [f"Its lease is damaged: its epoch is '{epoch}'."]
    with pytest.raises(StoreError, match="its epoch is") as caught:
        sql.open(run)
    change(sql, caught.value.hint.partition(": ")[2])
    sql.open(run).close()


def test_rows_of_no_journal_are_named_and_removed(sql: SqlStore) -> None:
    run = sound(sql)
    change(sql, "INSERT INTO leases (journal, epoch, holder, beat_at) VALUES (77, 1, '', 0)")
    change(sql, "INSERT INTO records (journal, seq, line) VALUES (78, 1, ?)", b"junk")
    change(sql, "INSERT INTO blobs (run_id, hash, data) VALUES ('20200101_000000', 'x', ?)", b"junk")
    named = [problem.run for problem in check(sql, sql.account())]
    assert named == ["20200101_000000", "journal 77", "journal 78"]
    assert sorted(sql.sweep(AT)) == named
    assert list(check(sql, sql.account())) == []
    assert len(list(sql.read(run))) == 7


def test_run_whose_row_is_gone_is_damage_is_kept_and_entered_again(sql: SqlStore) -> None:
    free, paid = write(sql, [started(claim=CLAIM)], claim=CLAIM), sound(sql)
    part = sql.open(f"{paid}/fan#1")
    part.append(1, [line(1, StepStarted("write#1")), line(2, CallStarted("write#1", "key", "m", "r", worst="1"))])
    part.close()
    names = [free, paid, f"{paid}/fan#1"]
    before = {name: list(sql.read(name)) for name in names}
    with sql.database.read() as link:
        rows = link.rows("SELECT journal, run, run_id, path, stem, width, claim FROM journals ORDER BY journal")
    change(sql, "DELETE FROM journals")
    found = said(sql)
    assert sorted(name for name, _ in found) == sorted(names)
    assert all("its records are there. `store upgrade` enters it again." in text for _, text in found)
    assert sql.sweep(AT) == []
    assert list(sql.orphans()) == names
    sql.upgrade()
    assert said(sql) == []
    assert {name: list(sql.read(name)) for name in names} == before
    with sql.database.read() as link:
        now = link.rows("SELECT journal, run, run_id, path, stem, width, claim FROM journals ORDER BY journal")
    assert list(map(tuple, now)) == list(map(tuple, rows))
    sql.open(paid).close()


def test_paid_records_of_nobody_knows_whom_are_kept(sql: SqlStore) -> None:
    run = sound(sql)
    part = sql.open(f"{run}/fan#1")
    part.append(1, [line(1, CallStarted("write#1", "key", "m", "r", worst="1"))])
    part.close()
    change(sql, "DELETE FROM charges WHERE run <> run_id")
    change(sql, "DELETE FROM journals WHERE path <> ''")
    ((name, text),) = said(sql)
    assert name.startswith("journal ")
    assert text.endswith("Bring the row back from a copy of the database.")
    assert sql.sweep(AT) == []
    sql.upgrade()
    assert [name for name, _ in said(sql)] == [name]


def test_charge_of_a_record_that_was_lost_is_no_damage(sql: SqlStore) -> None:
    run = sound(sql)
    change(sql, "UPDATE records SET line = ? WHERE seq = 6", b"junk")
    assert [text for _, text in said(sql) if "charges" in text] == []
    sql.open(run).close()
    assert said(sql) == []
    change(sql, "UPDATE records SET line = ? WHERE seq = 5", b"junk")
    other = type(sql)(sql.database, sql._clock)
    other.open(run).close()
    assert said(sql) == []


def test_charges_are_put_right_by_an_upgrade(sql: SqlStore) -> None:
    run, other = sound(sql), write(sql, small_run())
    change(sql, "UPDATE charges SET low = 9, state = 'open' WHERE run = ?", run)
    change(sql, "DELETE FROM charges WHERE run = ?", other)
    change(
        sql, "INSERT INTO charges SELECT journal, 6, run_id, run, at, day, model, label, state, low, high FROM charges"
    )
    assert {name for name, _ in said(sql)} == {run, other}
    sql.upgrade()
    assert said(sql) == []
    with sql.database.read() as link:
        rows = link.rows("SELECT run, call, state, low, high FROM charges ORDER BY run")
    assert [(name, call, state, float(low), float(high)) for name, call, state, low, high in rows] == [
        (run, 5, "exact", 1.85, 1.85),
        (other, 5, "exact", 1.85, 1.85),
    ]


def test_row_of_another_type_is_damage_as_any_other(make_store: Callable[[str], SqlStore]) -> None:
    store = make_store("sqlite")
    run = write(store, small_run())
    for value in ("'text'", "5", "2.5", "CAST(x'ff' AS TEXT)"):
        change(store, f"UPDATE records SET line = {value} WHERE seq = 4")
        assert "Record 4 is damaged" in "".join(text for _, text in said(store))
    change(store, "UPDATE journals SET head = 'text'")
    assert ids(store) == [run]
    blob = store.open(run).put_blob(b"x" * 50_000)
    change(store, "UPDATE blobs SET data = 'text' WHERE hash = ?", blob)
    with pytest.raises(CheckpointCorrupt, match="damaged"):
        store.get_blob(run, blob)


def test_line_that_is_text_in_sqlite_is_read(make_store: Callable[[str], SqlStore]) -> None:
    store = make_store("sqlite")
    run, _ = store.create(started(), [], at=AT)
    change(store, "UPDATE records SET line = CAST(line AS TEXT)")
    assert len(list(store.read(run))) == 1
