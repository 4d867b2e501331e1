"""Where everything is below the prefix. Keys are listed in ascending order only, so newest first is in the key.

heads/INVERTED-ID            the head document of a run (heads/INVERTED/ID: of a very long id)
runs/ID/b/HASH               a value
runs/ID/deleted              it is being removed
runs/ID/j/SEQ                one append: whole lines, the first of them with this number
runs/ID/late/NAME            lines of an owner that had lost the run
runs/ID/lease                who owns it
runs/ID/parts/PATH/…         the same of a part: j, late, lease, s, x
runs/ID/s/FIRST-LAST         256 appends once more, in one object; with -N: the journal as a repair wrote it
runs/ID/x/NAME               damaged bytes that a repair moved away
account/DAY, kept/ID         the spend of a day; the sums of a deleted run
kept-again/ID                the same sums once more: they are known nowhere else
limits/all                   the limits of windows and labels
claims/HASH/ID               a run that holds this claim
claims/HASH.lease            who is just creating one
proof/RANDOM                 a test of the server's conditional puts
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from pipeline.store.names import is_id, is_part, split

HEADS, RUNS, ACCOUNT, KEPT, CLAIMS, PROOF = "heads", "runs", "account", "kept", "claims", "proof"
#: The longest id has 128 characters.
_LONGEST = 255
#: The key of the head of a longer id has several frames.
_LONG = 80
#: As many characters as a minted id has without its counter: names.newest_first compares these first.
_STEM = 15
_APPEND, _SEGMENT = re.compile("[0-9]{12}"), re.compile("[0-9]{12}-[0-9]{12}(-[0-9]{6})?")
#: What the seam calls a folder of a run, and what it is called here; others have the same name.
_FOLDERS = {"blobs": "b"}
_CLAIM = ".claims/"


def is_run(name: str) -> bool:
    """Return whether a journal's name is that of a whole run."""
    return "/" not in name


def is_claim(name: str) -> bool:
    """Return whether a journal's name is that of a claim."""
    return name.startswith(_CLAIM)


def home(name: str) -> str:
    """Return the folder of the journal and the lease of a run or part.

    Raises:
        RunNotFound: It is no possible name.
    """
    run_id, path = split(name)
    return f"{RUNS}/{run_id}/parts/{_frame(path)}" if path else f"{RUNS}/{run_id}"


def part_path(key: str) -> str:
    """Return the path of the part that a key below `runs/ID/parts/` belongs to; "": it is none of ours."""
    frame = key.split("/parts/", 1)[1].split("/", 1)[0]
    path = unquote(frame.replace("=", "%"))
    return path if _frame(path) == frame and is_part(path) else ""


def journal(name: str, seq: int) -> str:
    """Return the key of the append that begins with this number."""
    return f"{home(name)}/j/{seq:012d}"


def lease(name: str) -> str:
    """Return the key of who owns a run, a part or a claim."""
    if is_claim(name):
        return f"{CLAIMS}/{name.removeprefix(_CLAIM)}.lease"
    return f"{home(name)}/lease"


def deleted(name: str) -> str:
    """Return the key of the mark that a run is being removed."""
    return f"{home(name)}/deleted"


def segment(name: str, first: int, last: int) -> str:
    """Return the key of an object that holds the lines first to last of many appends."""
    return f"{home(name)}/s/{first:012d}-{last:012d}"


def claim(claim_hash: str, run_id: str) -> str:
    """Return the key that says that a run holds a claim."""
    return f"{CLAIMS}/{claim_hash}/{run_id}"


def object_key(key: str) -> str:
    """Return where an object is that the seam calls by this key."""
    frames = key.split("/")
    if frames[0] != RUNS or len(frames) < 3:
        return key
    if frames[2] == "head":
        return head(frames[1])
    if frames[2] == "parts":
        frames[3] = _frame(unquote(frames[3]))
    else:
        frames[2] = _FOLDERS.get(frames[2], frames[2])
    return "/".join(frames)


def is_append(key: str) -> bool:
    """Return whether an object below `j` is one of ours."""
    return _below(key, "j", _APPEND)


def is_segment(key: str) -> bool:
    """Return whether an object below `s` is one of ours."""
    return _below(key, "s", _SEGMENT)


def is_rewritten(key: str) -> bool:
    """Return whether a segment is a whole journal that a repair wrote anew."""
    return key.rpartition("/")[2].count("-") > 1


def span(key: str) -> tuple[int, int]:
    """Return the numbers of the first and the last line of a segment."""
    first, last, *_ = key.rpartition("/")[2].split("-")
    return int(first), int(last)


def seq(key: str) -> int:
    """Return the number that an append begins with."""
    return int(key.rpartition("/")[2])


def head(run_id: str) -> str:
    """Return the key of a run's head; these keys ascend as names.newest_first orders the ids."""
    order = f"{stem(run_id)}{_LONGEST - len(run_id):03d}", _inverted(run_id[_STEM:])
    # Servers that keep files take frames of at most 255 bytes. Only ids of one length are told apart by what
    # follows the length, so that a long one may have more frames.
    return "/".join((HEADS, *order, run_id)) if len(run_id) > _LONG else f"{HEADS}/{''.join(order)}-{run_id}"


def head_id(key: str) -> str:
    """Return the id of the run whose head it is; "": it is none of ours."""
    frames = key.split("/")[1:]
    run_id = frames[0].partition("-")[2] if len(frames) == 1 else frames[-1] if frames else ""
    return run_id if is_id(run_id) and head(run_id) == key else ""


def first(folder: str) -> str:
    """Return a key behind names with an empty frame or `..` in a folder, and before ours (but for a run named 0)."""
    return f"{folder}/0"


def stem(run_id: str) -> str:
    """Return the beginning of a run's head key that all ids of the same second share."""
    return _inverted(run_id[:_STEM]).ljust(2 * _STEM, "f")


def _below(key: str, folder: str, pattern: re.Pattern[str]) -> bool:
    above, _, name = key.rpartition("/")
    return pattern.fullmatch(name) is not None and above.endswith(f"/{folder}")


def _inverted(text: str) -> str:
    return bytes(255 - ord(char) for char in text).hex()


def _frame(path: str) -> str:
    """Return a path as one frame of a key: servers and clients disagree on how % and ~ are written."""
    return quote(path, safe="").replace("~", "%7E").replace("%", "=")
