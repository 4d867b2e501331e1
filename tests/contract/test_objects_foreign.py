"""Objects that nobody of this program put into the bucket: no listing falls over them, and nothing of ours is lost."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import StoreError
from pipeline.store.base import Claim
from pipeline.store.integrity import check
from pipeline.store.names import is_id, is_part
from pipeline.store.objects import keys
from tests.contract.harm import BucketStore, account_of, bucket_of, claimants, open_bucket
from tests.journals import AT, StillClock, small_run, started
from tests.servers.objects import Moto
from tests.stores import ids, write

#: What stands behind a folder's name: empty frames, frames that lead elsewhere, odd and long names.
ODD = ["", "/x", "../x", "./x", "\u00fc\u20ac#?&x", "y" * 700, "zz/20260109_143022", "20260109_143022/", "%2F", "~"]
#: What the client tells of no key.
UNTOLD = ("/x", "../x", "./x")


@pytest.fixture
def store(objects: str, clock: StillClock) -> BucketStore:
    return open_bucket(objects, clock)


def put(store: BucketStore, key: str, data: bytes = b"junk") -> None:
    """As another program would: this client's own puts take no such key."""
    from moto.s3.models import s3_backends

    backend: Any = s3_backends["123456789012"]["aws"]
    backend.put_object(bucket_of(store).address.bucket, f"{bucket_of(store).address.prefix}/{key}", data)


def test_foreign_objects_are_in_no_listing(store: BucketStore, moto: Moto) -> None:
    if not isinstance(moto, Moto):
        pytest.skip("these keys are put there behind the server's back")
    claim = Claim("publish", "course", "there", "me")
    run = write(store, small_run())
    part = store.open(f"{run}/a")
    part.append(1, [started()])
    part.close()
    blob = store.open(run)
    blob.put_blob(b"value")
    blob.close()
    account_of(store).keep(run, {"usd": "1"})
    folder = f"{keys.CLAIMS}/{hashlib.sha256(json.dumps(claim.to_json()).encode()).hexdigest()[:32]}"
    before = ids(store), store.parts(run), store.blobs(run), list(store.read(run)), dict(account_of(store).kept())
    home = keys.home(run)
    for odd in ODD:
        # What lies below the name of a run is what is left of one.
        for each in (keys.HEADS, keys.KEPT, folder, *(() if "2026" in odd else (keys.RUNS,))):
            put(store, f"{each}/{odd}")
        for each in () if odd in UNTOLD else (home, *(f"{home}/{name}" for name in "bjs")):
            put(store, f"{each}/{odd}")
    put(store, f"{keys.home(run)}/d", b"between the blobs and the records")
    put(store, f"{home}/jz")
    put(store, f"{home}/parts/=zz/x")
    put(store, f"{keys.home(run)}/j/x/000000000002")
    store = open_bucket(store.url, StillClock())
    account = account_of(store)
    assert (ids(store), store.parts(run), store.blobs(run), list(store.read(run)), dict(account.kept())) == before
    # The client tells a key with a slash at its end as one without.
    assert claimants(store, claim) == [run]
    assert account.total(AT.date()) == Decimal(0)
    assert (store.leftovers(), store.unlisted(), store.sweep(AT + timedelta(days=999))) == ([], [], [])
    assert list(check(store, account)) == []
    assert store.is_there()
    other, journal = store.create(started(), [], at=AT)
    journal.close()
    store.open(run).close()
    assert ids(store) == [other, run]


def test_object_that_the_client_cannot_tell_is_named_with_how_to_remove_it(store: BucketStore, moto: Moto) -> None:
    if not isinstance(moto, Moto):
        pytest.skip("these keys are put there behind the server's back")
    run, other = write(store, small_run()), write(store, small_run())
    put(store, f"{keys.home(run)}/parts//x")
    heads = {head.run_id: head.corrupt for head in store.heads()}
    assert heads[other] == ""
    assert "which this program cannot have made" in str(heads[run])
    with pytest.raises(StoreError, match="which this program cannot have made") as caught:
        store.parts(run)
    assert "not be reached" not in caught.value.message
    key = f"runs/{keys.home(run)}/parts//x"
    assert caught.value.data["foreign"]
    assert caught.value.hint == (
        f"Remove it: aws s3api delete-object --bucket {bucket_of(store).address.bucket} --key {key}"
    )


@given(st.text(max_size=300))
def test_every_key_below_heads_is_that_of_a_run_or_of_none(text: str) -> None:
    for key in (f"heads/{text}", text):
        run = keys.head_id(key)
        assert run == "" or (is_id(run) and keys.head(run) == key)


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", fullmatch=True))
def test_head_of_every_run_is_told_and_stands_behind_the_first(run: str) -> None:
    assert keys.head_id(keys.head(run)) == run
    assert keys.head(run) > keys.first("heads")
    assert keys.journal(run, 1) > keys.first("runs")


@given(st.text(max_size=200))
def test_every_key_below_parts_is_that_of_a_part_or_of_none(text: str) -> None:
    path = keys.part_path(f"runs/a/parts/{text}/j/1")
    assert path == "" or (is_part(path) and path == unquote(text.split("/")[0].replace("=", "%")))
    if is_part(text) and text.isprintable():
        assert keys.part_path(f"{keys.home(f'a/{text}')}/j/1") == text


@given(st.text(max_size=100))
def test_numbers_of_appends_and_segments_are_read_of_ours_only(text: str) -> None:
    for key in (text, f"runs/a/j/{text}", f"runs/a/s/{text}"):
        if keys.is_append(key):
            assert key.endswith(f"/j/{keys.seq(key):012d}")
        if keys.is_segment(key):
            assert keys.segment("a", *keys.span(key)).rpartition("/")[2] == key.rpartition("/")[2]
