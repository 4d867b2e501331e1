"""Where everything stands below the prefix. Keys are listed in ascending order only, so newest first is in the key.

heads/INVERTED-ID            the head document of a run (heads/INVERTED/ID: of a very long id)
runs/ID/b/HASH               a blob
runs/ID/j/SEQ                one append: whole lines, the first of them with this seq
runs/ID/lease                who owns it
runs/ID/parts/PATH/j/SEQ     an append of a sub-journal; its lease beside it
runs/ID/s/FIRST-LAST         256 appends once more, in one object
runs/ID/x/NAME               damaged bytes that a repair moved away
account/DAY, kept/ID         the spend of a day; the sums of a deleted run
kept-again/ID                the same sums once more
claims/HASH/ID, claims/HASH.lock
proof/RANDOM                 what shows that the server keeps its word
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from pipeline.store.names import is_id, is_part, split

HEADS, RUNS, ACCOUNT, KEPT, CLAIMS, PROOF = "heads", "runs", "account", "kept", "claims", "proof"
#: The sums of deleted runs once more: they are known nowhere else.
KEPT_AGAIN = "kept-again"
#: The longest id has 128 characters.
_LONGEST = 255
#: The key of the head of a longer id has several frames.
_LONG = 80
#: As many characters as a minted id has without its counter: names.newest_first compares these first.
_STEM = 15
_APPEND, _SEGMENT = re.compile("[0-9]{12}"), re.compile("[0-9]{12}-[0-9]{12}")


def home(run: str) -> str:
    """Below which the journal and the lease of a run or sub-journal stand.

    Raises:
        RunNotFound: It is no possible name.
    """
    run_id, path = split(run)
    return f"{RUNS}/{run_id}/parts/{_frame(path)}" if path else f"{RUNS}/{run_id}"


def part_path(key: str) -> str:
    """The path of the sub-journal that a key below `runs/ID/parts/` is of; "": of none, somebody else put it there."""
    frame = key.split("/parts/", 1)[1].split("/", 1)[0]
    path = unquote(frame.replace("=", "%"))
    return path if _frame(path) == frame and is_part(path) else ""


def journal(run: str, seq: int) -> str:
    """The key of the append that begins with this seq."""
    return f"{home(run)}/j/{seq:012d}"


def lease(run: str) -> str:
    """The key of who owns a run or sub-journal."""
    return f"{home(run)}/lease"


def deleted(run: str) -> str:
    """The key of what says that a run is being removed."""
    return f"{home(run)}/deleted"


def blob(run: str, name: str) -> str:
    """The key of a blob; sub-journals share those of their run."""
    return f"{RUNS}/{split(run)[0]}/b/{name}"


def segment(run: str, first: int, last: int) -> str:
    """The key of an object that holds the lines first to last of many appends."""
    return f"{home(run)}/s/{first:012d}-{last:012d}"


def is_append(key: str) -> bool:
    """Whether an object below `j` is one of ours."""
    return _below(key, "j", _APPEND)


def is_segment(key: str) -> bool:
    """Whether an object below `s` is one of ours."""
    return _below(key, "s", _SEGMENT)


def span(key: str) -> tuple[int, int]:
    """The first and the last seq of a segment."""
    first, _, last = key.rpartition("/")[2].partition("-")
    return int(first), int(last)


def seq(key: str) -> int:
    """The seq that an append begins with."""
    return int(key.rpartition("/")[2])


def head(run_id: str) -> str:
    """The key of a run's head; these keys ascend as names.newest_first orders the ids."""
    order = f"{stem(run_id)}{_LONGEST - len(run_id):03d}", _inverted(run_id[_STEM:])
    # Servers that keep files take frames of at most 255 bytes. Only ids of one length are told apart by what
    # follows the length, so that a long one may have more frames.
    return "/".join((HEADS, *order, run_id)) if len(run_id) > _LONG else f"{HEADS}/{''.join(order)}-{run_id}"


def head_id(key: str) -> str:
    """The id of the run whose head it is; "": of none, somebody else put it there."""
    frames = key.split("/")[1:]
    run_id = frames[0].partition("-")[2] if len(frames) == 1 else frames[-1] if frames else ""
    return run_id if is_id(run_id) and head(run_id) == key else ""


def first(folder: str) -> str:
    """What stands behind names with an empty frame or `..` in a folder, and before ours: but for a run named 0."""
    return f"{folder}/0"


def stem(run_id: str) -> str:
    """The beginning of a run's head key that all ids of the same second share."""
    return _inverted(run_id[:_STEM]).ljust(2 * _STEM, "f")


def _below(key: str, folder: str, pattern: re.Pattern[str]) -> bool:
    above, _, name = key.rpartition("/")
    return pattern.fullmatch(name) is not None and above.endswith(f"/{folder}")


def _inverted(text: str) -> str:
    return bytes(255 - ord(char) for char in text).hex()


def _frame(path: str) -> str:
    """A path as one frame of a key: servers and clients disagree on how % and ~ are written."""
    return quote(path, safe="").replace("~", "%7E").replace("%", "=")
