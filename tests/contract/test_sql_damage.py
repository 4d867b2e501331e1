"""What may happen to the rows of a database: each damage is named with its run, and nothing trips over it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline.errors import CheckpointCorrupt
from pipeline.records.codec import decode_line
from pipeline.records.documents import head_document
from pipeline.records.fold import fold
from pipeline.records.kinds import CallStarted
from pipeline.store.integrity import check
from pipeline.store.runs import RunStore
from tests.contract import harm
from tests.journals import AT, line, small_run, started
from tests.stores import ids, write

Harm = Callable[[RunStore, str], object]


def said(store: RunStore) -> list[tuple[str, str]]:
    return [(problem.run, problem.text) for problem in check(store, store.account()) if problem.serious]


def sound(store: RunStore) -> str:
    """A run of which everything is there."""
    lines = small_run()
    run, journal = store.create(lines[0], [], at=AT)
    blob = journal.put_blob(b"request")
    lines[4] = line(5, CallStarted("sow#1", "key", "claude-sonnet-5-5", blob, worst="2.00"))
    journal.append(2, lines[1:])
    state = fold(run, map(decode_line, store.read(run)))
    journal.write_head(head_document(state, journal.size, ["seed", "sow", "lessons", "publish"]), True)
    journal.close()
    assert said(store) == []
    return run


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda store, run: harm.record(store, run, 4, b"junk"), "4 bytes between records 3 and 5 are not a record."),
        (lambda store, run: harm.record(store, run, 4, None), "Record 4 is missing from the journal"),
        (lambda store, run: harm.move(store, run, 4, 99), "Record 99 holds record 4."),
        (lambda store, run: harm.move(store, run, 4, 0), "Record 0 holds record 4."),
        (lambda store, run: harm.record(store, run, 1, b"junk"), "It cannot be resumed."),
        (lambda store, run: harm.more(store, run, 8, b"{}"), "The last 3 bytes are an incomplete record."),
        (lambda store, run: harm.head(store, run, b"{}"), "Its head is damaged"),
        (lambda store, run: harm.values(store, run, None), "is missing; a record refers to it."),
        (lambda store, run: harm.values(store, run, b"junk"), "is damaged; a record refers to it."),
    ],
)
def test_damage_is_named_with_its_run(sql: RunStore, damage: Harm, words: str) -> None:
    run = sound(sql)
    damage(sql, run)
    found = said(sql)
    assert [name for name, text in found if words in text] == [run], found
    assert {name for name, _ in found} == {run}
    # Whatever it is, the run is listed, and read as far as it goes.
    assert ids(sql) == [run]
    assert len(list(sql.read(run))) >= 6


def test_row_of_another_type_is_damage_as_any_other(make_store: Callable[[str], RunStore]) -> None:
    store = make_store("sqlite")
    run = write(store, small_run())
    for value in ("'text'", "5", "2.5", "CAST(x'ff' AS TEXT)"):
        harm.change(store, f"UPDATE records SET line = {value} WHERE seq = 4")
        assert "between records 3 and 5 are not a record" in "".join(text for _, text in said(store))
    harm.change(store, "UPDATE objects SET data = 'text' WHERE key LIKE '%/head'")
    assert ids(store) == [run]
    blob = store.open(run).put_blob(b"x" * 50_000)
    harm.change(store, "UPDATE objects SET data = 'text' WHERE key LIKE ?", f"%{blob}")
    with pytest.raises(CheckpointCorrupt, match="damaged"):
        store.get_blob(run, blob)


def test_line_that_is_text_in_sqlite_is_read(make_store: Callable[[str], RunStore]) -> None:
    store = make_store("sqlite")
    run, _ = store.create(started(), [], at=AT)
    harm.change(store, "UPDATE records SET line = CAST(line AS TEXT)")
    assert len(list(store.read(run))) == 1


def test_charge_whose_end_is_destroyed_is_open_in_the_view(sql: RunStore) -> None:
    run = sound(sql)
    charge = "SELECT state, high FROM charges"
    assert [(state, float(high)) for state, high in harm.rows(sql, charge)] == [("exact", 1.85)]
    harm.record(sql, run, 6, b"junk")
    assert [(state, float(high)) for state, high in harm.rows(sql, charge)] == [("open", 2.0)]


def test_damaged_value_is_named_and_stored_anew_by_the_next_owner(sql: RunStore) -> None:
    run, journal = sql.create(started(), [], at=AT)
    blob = journal.put_blob(b"lesson")
    harm.values(sql, run, b"junk", blob=blob)
    with pytest.raises(CheckpointCorrupt) as caught:
        sql.get_blob(run, blob)
    assert caught.value.data["blob"] == blob
    journal.close()
    assert sql.open(run).put_blob(b"lesson") == blob
    assert sql.get_blob(run, blob) == b"lesson"
