"""The shell scripts are clean and keep to what bash 3.2 knows, the bash of macOS."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = [
    "pipeline.sh",
    "devops/pipeline.sh",
    "devops/venv.sh",
    "devops/check.sh",
    "devops/lock.sh",
    "devops/bench.sh",
    ".ci/run",
]

#: Came with bash 4 or later, or is GNU's alone.
TOO_NEW = re.compile(
    r"""
      \b(?:declare|local|typeset)\s+-[a-zA-Z]*[Anglu]       # associative arrays, namerefs, case
    | \b(?:mapfile|readarray|coproc)\b
    | \$\{[^}]*(?:,,|\^\^|@[A-Za-z]\})                      # ${x,,} ${x^^} ${x@Q}
    | \$\{[^}]*:\s*-?\d+:\s*-\d                             # ${x:0:-1}
    | &>> | \|& | ;;?&
    | \bprintf\s+['"]?%\(                                   # printf %(…)T
    | \bwait\s+-n\b | \[\[?\s+-v\s | EPOCHSECONDS | BASHPID
    | \breadlink\s+-f\b | \brealpath\s | \bflock\b | \btimeout\s+\d | \bsed\s+-i\b | \bcp\s+-T\b | \bmv\s+-T\b
    | \bgrep\b[^|\n]*\\\| | \bgrep\s+-\w*P | \bstat\s+-c\b | \bdate\s+-d\b | \bmktemp\s+--
    """,
    re.VERBOSE,
)


def code_of(script: str) -> list[tuple[int, str]]:
    """The lines of a script without its comments."""
    lines = (ROOT / script).read_text(encoding="utf-8").splitlines()
    return [(number, re.sub(r"(^|\s)#.*", "", line)) for number, line in enumerate(lines, 1)]


def test_scripts_keep_to_old_bash_and_common_tools_and_can_be_started() -> None:
    found = [f"{script}:{n}: {line}" for script in SCRIPTS for n, line in code_of(script) if TOO_NEW.search(line)]
    assert not found, "\n".join(["", *found])
    # One is only sourced.
    assert [script for script in SCRIPTS if not os.access(ROOT / script, os.X_OK)] == ["devops/venv.sh"]


def test_new_bash_is_recognised() -> None:
    for line in (
        "declare -A table", "local -n other=$1", "mapfile -t rows <file", 'echo "${name,,}"', 'echo "${name@Q}"',
        'echo "${name:0:-1}"', "make &>>log", 'root=$(readlink -f "$0")', "timeout 10 make",
        "grep -q 'one\\|two' log", "sed -i s/a/b/ file",
    ):  # fmt: skip
        assert TOO_NEW.search(line), line


def test_scripts_pass_shellcheck() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    if not shellcheck.exists():
        assert not os.environ.get("CI"), "shellcheck is one of the tests' pins"
        pytest.skip("shellcheck is not installed")
    result = subprocess.run(
        [shellcheck, "--external-sources", *SCRIPTS], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
