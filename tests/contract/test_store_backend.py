"""What every backend promises the store above it: bytes under names and keys, and one owner a journal."""

from __future__ import annotations

from datetime import timedelta
from threading import Thread

import pytest

from pipeline.store.backend import Backend, Fenced, Gone, Held, Tail, claim_text, folder_key
from tests.journals import AT, CLAIM, StillClock, small_run, started

RUN = "20260109_143022"


def made(backend: Backend, run: str = RUN, lines: list[bytes] | None = None) -> Tail:
    """A run of these lines, owned."""
    tail = backend.own(run, AT, new=True)
    assert tail is not None
    given = lines or small_run()
    tail.append(1, given[:1], True)
    if given[1:]:
        tail.append(2, given[1:], True)
    return tail


def raw(backend: Backend, name: str = RUN, after: int = 0) -> list[bytes]:
    return [line for block in backend.read(name, after) for line in block if line]


def bare(lines: list[bytes]) -> list[bytes]:
    return [line.removesuffix(b"\n") for line in lines]


def owned(backend: Backend, name: str = RUN) -> Tail:
    tail = backend.own(name, AT)
    assert tail is not None
    return tail


def runs(backend: Backend) -> list[str]:
    return [tip.run for tip in backend.tips() if not tip.leftover]


def test_nothing_is_kept_at_first(backend: Backend) -> None:
    assert list(backend.tips()) == []
    assert backend.get("account/2026-01-09") is None
    assert list(backend.list("kept/")) == []
    assert backend.own(RUN, AT) is None
    with pytest.raises(FileNotFoundError):
        backend.read(RUN)


def test_what_was_appended_is_read_back_in_order(backend: Backend) -> None:
    tail = made(backend)
    assert raw(backend) == bare(small_run())
    tail.append(8, [b"eight\n", b"nine\n"], False)
    tail.append(10, [b"ten\n"], True)
    assert raw(backend)[7:] == [b"eight", b"nine", b"ten"]
    tail.release()
    assert raw(backend)[7:] == [b"eight", b"nine", b"ten"]


def test_reading_after_a_record_leaves_nothing_out_that_follows(backend: Backend) -> None:
    made(backend).release()
    for after in range(9):
        wanted = bare(small_run())[after:]
        assert not wanted or raw(backend, after=after)[-len(wanted) :] == wanted


def test_same_lines_at_the_same_seq_again_change_nothing(backend: Backend) -> None:
    tail = made(backend)
    tail.append(8, [b'{"seq":8,"a"}\n'], True)
    tail.append(8, [b'{"seq":8,"a"}\n'], True)
    assert len(raw(backend)) == 8
    tail.append(9, [b'{"seq":9,"b"}\n'], True)
    assert raw(backend)[7:] == [b'{"seq":8,"a"}', b'{"seq":9,"b"}']


def test_name_is_taken_once_also_by_what_has_no_record_yet(backend: Backend) -> None:
    tail = backend.own(RUN, AT, new=True)
    assert tail is not None
    assert backend.own(RUN, AT, new=True) is None
    tail.release()
    assert backend.own(RUN, AT, new=True) is None
    with pytest.raises(FileNotFoundError):
        backend.read(RUN)
    assert [(tip.run, tip.leftover) for tip in backend.tips()] == [(RUN, True)]


def test_five_that_begin_at_once_get_five_names(backend: Backend) -> None:
    got: list[str] = []

    def begin() -> None:
        for number in range(20):
            if (tail := backend.own(name := f"{RUN}_{number:02d}", AT, new=True)) is not None:
                tail.append(1, [started()], True)
                got.append(name)
                return

    threads = [Thread(target=begin) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(got)) == len(got) == 5
    assert sorted(runs(backend)) == sorted(got)


def test_leftover_is_removed_by_who_owns_it(backend: Backend) -> None:
    tail = backend.own(RUN, AT, new=True)
    assert tail is not None
    tail.put(f"runs/{RUN}/blobs/" + "a" * 64, b"value")
    tail.release()
    held = owned(backend)
    backend.delete(f"runs/{RUN}")
    held.release()
    assert list(backend.tips()) == []
    made(backend).release()
    assert backend.get(f"runs/{RUN}/blobs/" + "a" * 64) is None


def test_one_owner_at_a_time(backend: Backend) -> None:
    tail = made(backend)
    with pytest.raises(Held) as held:
        backend.own(RUN, AT)
    assert held.value.holder["pid"] > 0
    assert held.value.holder["since"].startswith("2026-01-09T14:30:22")
    assert next(backend.tips()).owned()
    assert next(backend.tips()).holder() == held.value.holder
    tail.release()
    tail.release()
    assert not next(backend.tips()).owned()
    assert not next(backend.tips()).holder()
    again = owned(backend)
    assert again.epoch >= tail.epoch
    again.release()


def test_stamp_tells_whether_a_journal_is_as_it_was_left(backend: Backend) -> None:
    tail = made(backend)
    left = tail.left()
    tail.release()
    second = owned(backend)
    assert not left or second.found in (left, "")
    second.append(8, [b'{"seq":8,"a"}\n'], True)
    second.release()
    third = owned(backend)
    assert third.found == "" or third.found != left
    third.release()


def test_head_is_replaced_as_a_whole_and_found_in_the_tip(backend: Backend) -> None:
    tail = made(backend)
    tail.head(b"first", True)
    tail.head(b"second", False)
    tail.release()
    found = backend.get(f"runs/{RUN}/head")
    assert found is not None
    assert found[0] == b"second"
    tip = next(backend.tips())
    assert tip.head == b"second"
    assert tip.first() == small_run()[0].removesuffix(b"\n")
    assert tip.size in (-1, sum(map(len, small_run())))
    assert tip.last in (-1, 7)
    assert (tip.size, tip.last) != (-1, -1)


def test_rewrite_replaces_the_whole_journal(backend: Backend) -> None:
    made(backend).release()
    tail = owned(backend)
    kept = [small_run()[0], small_run()[1], b'{"seq":9,"x"}\n']
    tail.rewrite(kept)
    assert raw(backend) == bare(kept)
    tail.append(10, [b'{"seq":10,"y"}\n'], True)
    tail.release()
    assert raw(backend) == [*bare(kept), b'{"seq":10,"y"}']


def test_runs_are_listed_newest_first(backend: Backend) -> None:
    names = [RUN, f"{RUN}_02", f"{RUN}_99", f"{RUN}_100", "20270109_143022", "20250109_143022"]
    for name in names:
        made(backend, name, [started()]).release()
    ordered = [names[4], names[3], names[2], names[1], names[0], names[5]]
    assert runs(backend) == ordered
    for place, name in enumerate(ordered):
        assert [tip.run for tip in backend.tips(start=name)] == ordered[place:]


def test_listing_begins_where_a_run_would_be_that_is_not_there(backend: Backend) -> None:
    names = [f"{RUN}_100", f"{RUN}_99", f"{RUN}_02", RUN]
    for name in names:
        made(backend, name, [started()]).release()
    begins = {"20270109_143022": 0, f"{RUN}_98": 2, f"{RUN}_01": 3, "20260109_143021": 4, "a": 0}
    for start, place in begins.items():
        assert [tip.run for tip in backend.tips(start=start)] == names[place:]


def test_listing_from_a_run_on_shows_no_leftovers(backend: Backend) -> None:
    tail = backend.own(RUN, AT, new=True)
    assert tail is not None
    tail.release()
    assert list(backend.tips(start="20250109_143022")) == []


def test_runs_of_a_claim_are_among_those_that_are_asked_for(backend: Backend) -> None:
    made(backend, RUN, [started(CLAIM)]).release()
    made(backend, f"{RUN}_02", [started()]).release()
    assert RUN in {tip.run for tip in backend.tips(claim_text(CLAIM.to_json()))}


def test_objects_are_put_only_over_what_was_read(backend: Backend) -> None:
    key = "account/2026-01-09"
    first = backend.put_if(key, b"1", "")
    assert first
    assert backend.put_if(key, b"2", "") is None
    second = backend.put_if(key, b"2", first)
    assert second
    assert backend.put_if(key, b"3", first) is None
    assert backend.get(key) == (b"2", second)
    assert backend.put_if(key, b"4", None)
    assert backend.put_if(key, b"5", second) is None


def test_of_many_that_exchange_an_object_each_counts(backend: Backend) -> None:
    key = "account/2026-01-09"
    backend.put_if(key, b"0", "")

    def add() -> None:
        done = 0
        while done < 5:
            found = backend.get(key)
            assert found is not None
            done += backend.put_if(key, b"%d" % (int(found[0]) + 1), found[1]) is not None

    threads = [Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = backend.get(key)
    assert found is not None
    assert found[0] == b"20"


def test_keys_are_listed_below_their_folder_in_order(backend: Backend) -> None:
    tail = made(backend)
    blobs = [f"runs/{RUN}/blobs/{letter * 64}" for letter in "cab"]
    for key in blobs:
        tail.put(key, b"value")
    backend.put_if(f"runs/{RUN}/late/000000001-000001", b"line\n", "")
    backend.put_if(f"runs/{RUN}/x/journal.damaged-1", b"bytes", "")
    backend.put_if(f"kept/{RUN}", b"{}", None)
    tail.release()
    assert list(backend.list(f"runs/{RUN}/blobs/")) == sorted(blobs)
    assert list(backend.list(f"runs/{RUN}/late/")) == [f"runs/{RUN}/late/000000001-000001"]
    assert list(backend.list("kept/")) == [f"kept/{RUN}"]
    backend.delete(blobs[0])
    backend.delete(blobs[0])
    assert list(backend.list(f"runs/{RUN}/blobs/")) == sorted(blobs[1:])
    assert backend.get(f"runs/{RUN}/x/journal.damaged-1") is not None


def test_parts_are_journals_of_their_own(backend: Backend) -> None:
    assert backend.own(f"{RUN}/a", AT) is None
    tail = made(backend)
    for path in ("b/c#1", "a"):
        part = owned(backend, f"{RUN}/{path}")
        part.append(1, [f'{{"seq":1,"{path}"}}\n'.encode()], True)
        part.release()
    assert list(backend.parts(RUN)) == ["a", "b/c#1"]
    assert raw(backend, f"{RUN}/b/c#1") == [b'{"seq":1,"b/c#1"}']
    assert raw(backend) == bare(small_run())
    key = f"{folder_key(f'{RUN}/b/c#1')}/late/000000001-000001"
    backend.put_if(key, b"line\n", "")
    assert list(backend.list(f"{folder_key(f'{RUN}/b/c#1')}/late/")) == [key]
    assert list(backend.list(f"{folder_key(f'{RUN}/a')}/late/")) == []
    backend.delete(folder_key(f"{RUN}/a"))
    assert list(backend.parts(RUN)) == ["b/c#1"]
    tail.release()
    assert runs(backend) == [RUN]


def test_deleted_run_leaves_nothing_and_others_alone(backend: Backend) -> None:
    for name in (RUN, f"{RUN}_02"):
        tail = made(backend, name)
        tail.head(b"head", True)
        tail.put(f"runs/{name}/blobs/" + "a" * 64, b"value")
        part = owned(backend, f"{name}/part")
        part.append(1, [b'{"seq":1}\n'], True)
        part.release()
        tail.release()
    held = owned(backend)
    backend.delete(f"runs/{RUN}")
    held.release()
    assert [tip.run for tip in backend.tips()] == [f"{RUN}_02"]
    assert backend.get(f"runs/{RUN}/head") is None
    assert list(backend.list(f"runs/{RUN}/blobs/")) == []
    assert backend.own(RUN, AT) is None
    assert list(backend.parts(f"{RUN}_02")) == ["part"]
    made(backend, RUN, [started()]).release()
    assert raw(backend) == [started().removesuffix(b"\n")]
    assert list(backend.parts(RUN)) == []


def test_owner_whose_run_was_removed_is_told(backend: Backend) -> None:
    tail = made(backend)
    backend.delete(f"runs/{RUN}")
    with pytest.raises((Gone, Fenced)):
        tail.append(8, [b'{"seq":8,"a"}\n'], True)
    tail.release()
    assert runs(backend) == []


def test_claim_is_owned_for_a_moment_and_is_no_run(backend: Backend) -> None:
    tail = owned(backend, ".claims/0123456789abcdef")
    with pytest.raises(Held):
        backend.own(".claims/0123456789abcdef", AT)
    tail.rewrite([b'{"seq":1,"run":"a"}\n'])
    tail.release()
    owned(backend, ".claims/0123456789abcdef").release()
    assert list(backend.tips()) == []


def test_damaged_and_torn_lines_come_back_as_they_are(backend: Backend) -> None:
    tail = made(backend)
    tail.append(8, [b"not a record at all\n", b'{"seq":9,"a"}\n'], True)
    tail.release()
    assert raw(backend)[7:] == [b"not a record at all", b'{"seq":9,"a"}']


def test_time_of_a_clock_that_stands_still_is_no_hindrance(backend: Backend) -> None:
    clock = StillClock(AT + timedelta(days=400))
    tail = backend.own(RUN, clock.now(), new=True)
    assert tail is not None
    tail.append(1, [started()], True)
    tail.renew()
    tail.release()
    assert runs(backend) == [RUN]
