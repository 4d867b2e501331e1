"""Whether a folder lies on a network file system, where locks and syncs promise less."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

#: Types that reach over a network, as /proc/mounts and mount(8) name them.
NETWORK_TYPES = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "afpfs", "webdav", "davfs", "9p", "virtiofs"),
        *("beegfs", "ceph", "glusterfs", "lustre", "fuse.glusterfs", "fuse.s3fs", "fuse.sshfs"),
    }
)
_LINUX = Path("/proc/self/mounts")
_MAC_ROW = re.compile(r".* on (?P<point>/.*) \((?P<type>[a-z0-9_]+)[,)]")


def network_note(folder: Path) -> str:
    """Return a sentence where runs in `folder` are safe from kill -9 only; "" where nothing is known against it."""
    point, kind = mounted_at(folder.resolve(), _mounts())
    if kind not in NETWORK_TYPES:
        return ""
    return (
        f"{folder} is on a network file system ({kind} at {point}): runs there survive a killed process, "
        "but perhaps not a power cut, and two machines may both believe they own one."
    )


def mounted_at(path: Path, mounts: list[tuple[str, str]]) -> tuple[str, str]:
    """Return the mount point a path lies on and its type; the longest wins, of equals the last mounted."""
    best = ("", "")
    for point, kind in mounts:
        if path.is_relative_to(point) and len(point) >= len(best[0]):
            best = (point, kind)
    return best


def _mounts() -> list[tuple[str, str]]:
    try:
        if _LINUX.exists():
            return linux_mounts(_LINUX.read_text(errors="replace"))
        done = subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return []
    return mac_mounts(done.stdout)


def linux_mounts(text: str) -> list[tuple[str, str]]:
    """Return (mount point, type) of each line of /proc/mounts, where a space is a backslash and 040."""
    rows = [line.split(" ") for line in text.splitlines()]
    return [(re.sub(r"\\(\d{3})", lambda hit: chr(int(hit[1], 8)), row[1]), row[2]) for row in rows if len(row) > 2]


def mac_mounts(text: str) -> list[tuple[str, str]]:
    """Return (mount point, type) of each line of mount(8)."""
    return [(hit["point"], hit["type"]) for hit in map(_MAC_ROW.match, text.splitlines()) if hit]
