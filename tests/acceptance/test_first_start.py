"""The first start makes the environment once, whole, and says what is missing; later starts pay nothing for it."""

from __future__ import annotations

import os
import signal
import subprocess
from itertools import product
from pathlib import Path

import pytest

from tests.acceptance.fresh import FAKE_PYTHON, Copy, fake_copy


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return fake_copy(tmp_path)


@pytest.fixture
def made(copy: Copy) -> Copy:
    """A copy that was started before."""
    assert copy.start().returncode == 0
    copy.asked()
    return copy


def leftovers(copy: Copy) -> list[str]:
    return sorted(path.name for path in copy.root.iterdir() if path.name.startswith(".venv."))


# --- making it ------------------------------------------------------------------------------------


def test_first_start_installs_what_is_pinned_and_runs(copy: Copy) -> None:
    result = copy.start("list", "two words")

    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("ran [pipeline list two words]")
    assert result.stderr.count("\n") == 1
    assert "First start" in result.stderr
    asked = copy.asked()
    assert [line.partition(" ")[0] for line in asked] == ["probe", "venv", "-m", "run"]
    assert "--require-hashes" in asked[2]
    assert asked[2].endswith("devops/requirements/core.txt")
    assert leftovers(copy) == []


def test_first_start_works_where_bash_keeps_to_posix(copy: Copy) -> None:
    assert copy.start(POSIXLY_CORRECT="1").returncode == 0
    copy.asked()

    result = copy.start(POSIXLY_CORRECT="1")

    assert (result.returncode, result.stderr, copy.asked()) == (0, "", ["run"]), "a later start asks Python once"


def test_half_made_environment_is_made_again(made: Copy) -> None:
    made.stamp.unlink()
    (made.venv / "half").touch()

    result = made.start()

    assert "rebuilding" in result.stderr
    assert [line.partition(" ")[0] for line in made.asked()] == ["probe", "venv", "-m", "run"]
    assert made.stamp.exists()
    assert not (made.venv / "half").exists()

    python = made.venv / "bin/python"
    python.unlink()
    python.symlink_to("/nowhere/python3.11")
    assert made.start().returncode == 0
    assert len(made.asked("venv")) == 1, "its Python was gone"


def test_environment_of_other_pins_is_made_again(made: Copy) -> None:
    with (made.root / "devops/requirements/core.txt").open("a", encoding="utf-8") as lock:
        lock.write("# another release\n")

    assert made.start().returncode == 0
    assert len(made.asked("venv")) == 1
    assert made.start().returncode == 0
    assert made.asked() == ["run"]


def test_environment_of_another_python_is_made_again_where_one_is_named(made: Copy) -> None:
    other = made.add_tool("other-python", FAKE_PYTHON)

    assert made.start(PIPELINE_PYTHON=str(other)).returncode == 0
    assert len(made.asked("venv")) == 1
    assert made.start(PIPELINE_PYTHON=str(other)).returncode == 0
    assert made.start().returncode == 0
    assert made.asked() == ["run", "run"]


# --- from anywhere --------------------------------------------------------------------------------


def test_start_works_from_any_folder(made: Copy, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    (elsewhere / "one").symlink_to(made.root / "pipeline.sh")
    (elsewhere / "two").symlink_to("one")
    (elsewhere / "shim").symlink_to("../the project/devops/pipeline.sh")
    for command in (
        [str(made.root / "pipeline.sh")], ["../the project/pipeline.sh"], ["./one"], [str(elsewhere / "two")],
        ["../the project/devops/pipeline.sh"], ["./shim"], ["bash", "one"],
    ):  # fmt: skip
        result = made.start(*command[1:], "list", command=command[0], cwd=elsewhere)

        said = f"ran [pipeline list] in {elsewhere} root {made.root} "
        assert result.stdout.startswith(said), (command, result.stderr)


def test_start_hands_on_its_own_root_first_and_no_pythonhome(made: Copy) -> None:
    result = made.start(PYTHONPATH="/mine", PYTHONHOME="/other", PIPELINE_ROOT="/wrong", CDPATH="/tmp")

    assert f"root {made.root} path {made.root}:/mine home none" in result.stdout


def test_start_works_where_path_leads_nowhere(made: Copy) -> None:
    (made.root / "linked.sh").symlink_to("pipeline.sh")
    for command, path in product(("pipeline.sh", "devops/pipeline.sh", "linked.sh"), ("", "/nowhere")):
        result = made.start(str(made.root / command), "list", command="/bin/bash", PATH=path)
        assert (result.returncode, result.stderr) == (0, ""), (command, path)
        assert result.stdout.startswith("ran [pipeline list]")


def test_environment_can_lie_elsewhere(copy: Copy, tmp_path: Path) -> None:
    assert copy.start(PIPELINE_VENV="new/place/env", cwd=tmp_path).returncode == 0
    assert (tmp_path / "new/place/env/.stamp").exists()
    assert not copy.venv.exists()


def test_folder_that_is_not_ours_or_not_writable_is_refused(copy: Copy, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes").touch()
    for place, words in (("mine", "something else in it"), ("mine/notes/env", "PIPELINE_VENV=DIR")):
        result = copy.start(PIPELINE_VENV=str(tmp_path / place))

        assert (result.returncode, result.stderr.count("\n")) == (2, 1)
        assert words in result.stderr
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]


# --- which Python ---------------------------------------------------------------------------------


def test_too_old_python_or_none_is_one_line_with_what_to_install(copy: Copy) -> None:
    for version in ("2.7.18", "3.6.15", "3.9.18", "3.10.13"):
        result = copy.start(FAKE_VERSION=version)

        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
        for part in ("Python 3.11 or newer", version, "Install", "PIPELINE_PYTHON="):
            assert part in result.stderr
        named = copy.start(PIPELINE_PYTHON="python3", FAKE_VERSION=version)
        assert named.returncode == 2
        assert f"PIPELINE_PYTHON=python3 is Python {version}" in named.stderr
    assert not copy.venv.exists()
    assert leftovers(copy) == []

    (copy.tools / "python3").unlink()
    result = copy.start()
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "none was found" in result.stderr


def test_shim_with_nothing_behind_it_is_passed_over(copy: Copy) -> None:
    copy.add_tool("python3.14", "#!/bin/sh\necho 'command not found' >&2\nexit 127\n")

    assert copy.start().returncode == 0


def test_newer_python_is_preferred(copy: Copy) -> None:
    copy.add_tool("python3.13", FAKE_PYTHON.replace("3.11.9", "3.13.2").replace("python3.11", "python3.13"))

    assert "Python 3.13.2" in copy.start().stderr
    assert copy.start().returncode == 0
    assert copy.asked("venv") == ["venv"]


# --- which installer ------------------------------------------------------------------------------

FAKE_UV = r"""#!/bin/sh
echo "uv $1 $2" >>"$FAKE_LOG"
case "$1" in
    venv) shift $(($# - 1)); python3 -m venv "$1" ;;
    pip)  exit "${FAKE_UV_CODE:-0}" ;;
esac
"""


def test_uv_installs_where_it_is_present_and_pip_where_it_cannot(copy: Copy) -> None:
    copy.add_tool("uv", FAKE_UV)
    assert copy.start(FAKE_UV_CODE="1").returncode == 0
    assert len(copy.asked("-m pip install")) == 1
    copy.stamp.unlink()

    assert copy.start().returncode == 0
    asked = copy.asked()
    assert "uv pip install" in asked
    assert not [line for line in asked if line.startswith("-m pip")]


# --- when it fails --------------------------------------------------------------------------------


def test_failed_install_names_its_cause_and_its_log_and_is_tried_again(copy: Copy) -> None:
    for said, cause in (
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE", "its hash differs"),
        ("NewConnectionError: Temporary failure in name resolution", "check the network"),
        ("ERROR: No matching distribution found for click==8.5.1", "does not have a pinned package"),
        ("something new", "could not be installed"),
    ):
        result = copy.start(FAKE_FAIL=said)

        assert (result.returncode, result.stdout) == (2, "")
        assert cause in result.stderr.splitlines()[-1]
        log = copy.root / ".venv.log"
        assert str(log) in result.stderr
        assert said in log.read_text(encoding="utf-8")
        assert not copy.venv.exists()
        assert leftovers(copy) == [".venv.log"]

    assert copy.start().returncode == 0
    assert leftovers(copy) == []


def test_failed_renewal_keeps_the_old_environment(made: Copy) -> None:
    (made.root / "devops/requirements/core.txt").write_text("# another\n", encoding="utf-8")

    assert made.start(FAKE_FAIL="something new").returncode == 2
    assert made.stamp.exists()


# --- two at a time, and deaths --------------------------------------------------------------------


@pytest.fixture
def hold(tmp_path: Path) -> Path:
    """A pipe: pip waits until something is written into it."""
    path = tmp_path / "hold"
    os.mkfifo(path)
    os.mkfifo(f"{path}.reached")
    return path


def reached(hold: Path) -> None:
    """Return once pip waits at the pipe."""
    Path(f"{hold}.reached").read_text(encoding="utf-8")


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stderr
    return process.stderr.readline()


def test_two_first_starts_wait_for_each_other(copy: Copy, hold: Path) -> None:
    with copy.begin(FAKE_HOLD=str(hold)) as first:
        assert "First start" in first_line(first)
        reached(hold)
        with copy.begin() as second:
            assert "Another start is creating" in first_line(second)
            hold.write_text("go\n", encoding="utf-8")
            first_out, _ = first.communicate()
            second_out, second_err = second.communicate()

    assert first_out.startswith("ran")
    assert second_out.startswith("ran")
    assert second_err == "", "waiting is said once"
    assert len(copy.asked("venv")) == 1
    assert leftovers(copy) == []


def test_first_start_that_was_killed_does_not_hinder_the_next(copy: Copy, hold: Path) -> None:
    with copy.begin(FAKE_HOLD=str(hold)) as first:
        reached(hold)
        os.killpg(first.pid, signal.SIGKILL)
        first.communicate()
    assert ".venv.lock" in leftovers(copy)

    result = copy.start()

    assert result.returncode == 0
    assert "Another start" not in result.stderr
    assert leftovers(copy) == []


def test_first_start_that_was_interrupted_leaves_nothing(copy: Copy, hold: Path) -> None:
    with copy.begin(FAKE_HOLD=str(hold)) as first:
        reached(hold)
        os.killpg(first.pid, signal.SIGINT)
        first.communicate()

    assert first.returncode == 130
    assert not copy.venv.exists()
    assert leftovers(copy) == []


def test_lock_without_a_holder_is_broken(copy: Copy) -> None:
    (copy.root / ".venv.lock").mkdir()

    assert copy.start().returncode == 0
    assert leftovers(copy) == []


def test_lock_released_between_two_looks_is_no_failure(copy: Copy) -> None:
    real = os.path.realpath(copy.tools / "mkdir")
    # The first time the lock is asked for it seems taken, and is gone when it is looked at.
    copy.add_tool(
        "mkdir",
        f"""#!/bin/sh
case "$1" in
    *.lock) [ -e "$FAKE_LOG.seen" ] || {{ echo >"$FAKE_LOG.seen"; exit 1; }} ;;
esac
exec {real} "$@"
""",
    )

    result = copy.start()

    assert result.returncode == 0, result.stderr


def test_lock_of_another_machine_is_waited_for(copy: Copy) -> None:
    lock = copy.root / ".venv.lock"
    lock.mkdir()
    (lock / "holder").write_text("1 another-machine\n", encoding="utf-8")

    with copy.begin() as start:
        assert str(lock) in first_line(start)
        (lock / "holder").unlink()
        lock.rmdir()
        assert start.wait() == 0
