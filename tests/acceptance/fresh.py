"""A fresh copy of the project for the tests of its first start, with tools and a Python that we control."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: All that pipeline.sh may use besides bash itself: what every macOS and Linux has.
TOOLS = (
    "bash", "cat", "cksum", "dirname", "env", "grep", "kill", "mkdir", "mv", "ps", "readlink", "rm", "rmdir", "sh",
    "uname",
)  # fmt: skip

#: Stands in for Python: notes what it was asked, makes a venv of itself, waits in pip where FAKE_HOLD
#: is a pipe (and says so in FAKE_HOLD.reached), fails in pip with the text of FAKE_FAIL.
FAKE_PYTHON = r"""#!/bin/sh
here=$0
case "$1 $2" in
    "-c "*)     echo "probe" >>"$FAKE_LOG"; echo "${FAKE_VERSION:-3.11.9} $here"; exit ;;
    "-m venv")  echo "venv" >>"$FAKE_LOG"
                mkdir -p "$3/bin" "$3/lib/python3.11/site-packages"
                cat "$here" >"$3/bin/python"; chmod +x "$3/bin/python"; exit ;;
    "-m pip")   [ "$3" = --version ] && exit
                echo "$*" >>"$FAKE_LOG"
                if [ -p "${FAKE_HOLD:-}" ]; then echo >"$FAKE_HOLD.reached"; read -r _ <"$FAKE_HOLD"; fi
                if [ -n "${FAKE_FAIL:-}" ]; then echo "$FAKE_FAIL"; exit 1; fi
                exit ;;
    "-P -m")    echo "run" >>"$FAKE_LOG"; shift 2
                echo "ran [$*] in $(pwd) root $PIPELINE_ROOT path $PYTHONPATH home ${PYTHONHOME-none}"; exit ;;
esac
echo "unexpected: $*" >>"$FAKE_LOG"
exit 99
"""


@dataclass
class Copy:
    """One copy of the project and how to start it."""

    root: Path
    #: The only folder on PATH.
    tools: Path
    #: What the fake Pythons were asked, a line each.
    log: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def stamp(self) -> Path:
        return self.venv / ".stamp"

    def add_tool(self, name: str, script: str) -> Path:
        """Put an executable script on PATH."""
        path = self.tools / name
        path.unlink(missing_ok=True)
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)
        return path

    def asked(self, what: str = "") -> list[str]:
        """What the fake Pythons were asked since the last call, where it begins with `what`."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line for line in lines if line.startswith(what)]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The variables of a start: ours alone."""
        return {"PATH": str(self.tools), "FAKE_LOG": str(self.log), **self.env, **(more or {})}

    def start(
        self, *arguments: str, command: Path | str = "", cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run pipeline.sh (or another command) to its end."""
        return subprocess.run(
            [command or self.root / "pipeline.sh", *arguments],
            cwd=cwd or self.root,
            env=self.environment(variables),
            capture_output=True,
            text=True,
            check=False,
        )

    def begin(self, **variables: str) -> subprocess.Popen[str]:
        """Start pipeline.sh in a process group of its own and go on."""
        return subprocess.Popen(
            [self.root / "pipeline.sh"],
            cwd=self.root,
            env=self.environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


def copy_project(target: Path) -> None:
    """Copy what a clone would hold: files that git knows or would take up."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "pipeline.sh", "devops", "pipeline"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target / name)


def fake_copy(folder: Path) -> Copy:
    """A copy whose only Python is the fake one."""
    copy = Copy(folder / "the project", folder / "tools", folder / "asked.log")
    copy.root.mkdir()
    copy.tools.mkdir()
    for name in ("pipeline.sh", "devops/pipeline.sh", "devops/venv.sh", "devops/requirements/core.txt"):
        (copy.root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy.root / name)
    for name in (*TOOLS, "chmod"):
        found = shutil.which(name)
        assert found, f"this machine has no {name}"
        (copy.tools / name).symlink_to(os.path.realpath(found) if name != "sh" else found)
    # Waiting is what is tested, not how long: the poll comes back at once.
    copy.add_tool("sleep", "#!/bin/sh\nexit 0\n")
    copy.add_tool("python3", FAKE_PYTHON)
    return copy
