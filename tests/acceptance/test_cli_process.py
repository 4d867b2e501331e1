"""The command line as a process: exit codes, pipes, encodings, `.env`, completion, what it imports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline import environment
from tests.said import Cli
from tests.sample_runs import completed_run, failed_run

ROOT = Path(__file__).resolve().parents[2]


def surroundings(**variables: str) -> dict[str, str]:
    """The environment without what measures this process (it would be imported) or sets a language."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "LC_", "LANG"))}
    return {**kept, "PYTHONPATH": str(ROOT), **variables}


def pipeline(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "pipeline", *arguments],
        cwd=cwd,
        env=surroundings(**variables),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_reader_that_has_enough_is_no_error(tmp_path: Path) -> None:
    completed_run(tmp_path / "runs")
    command = [sys.executable, "-P", "-m", "pipeline", "list", "--store", f"files:{tmp_path}/runs"]
    read, write = os.pipe()
    os.close(read)
    said = subprocess.run(command, cwd=tmp_path, env=surroundings(), stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (said.returncode, said.stderr) == (0, b"")


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX"}])
def test_output_is_ascii_where_nothing_else_can_be_shown(tmp_path: Path, variables: dict[str, str]) -> None:
    run = failed_run(tmp_path / "runs")
    # The store is relative to the caller.
    said = pipeline("status", run, cwd=tmp_path, PIPELINE_STORE="files:runs", **variables)
    assert said.returncode == 0, said.stderr
    assert (said.stdout.isascii(), "=" * 75 in said.stdout) == (True, True)


def home_in(folder: Path) -> Path:
    """A copy of the package with a pipeline.sh beside it, which makes it its own home."""
    home = folder / "home"
    home.mkdir()
    shutil.copytree(ROOT / "pipeline", home / "pipeline", ignore=shutil.ignore_patterns("__pycache__"))
    (home / "pipeline.sh").touch()
    return home


def test_paths_in_the_env_file_count_from_it_wherever_the_caller_stands(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    (home / ".env").write_text("PIPELINE_STORE=files:mine\n")
    run = completed_run(home / "mine")
    for folder in (tmp_path, home):
        assert run in pipeline("list", cwd=folder, PYTHONPATH=str(home)).stdout


def test_commands_are_printed_as_they_can_be_typed_where_the_caller_stands(tmp_path: Path) -> None:
    run = failed_run(tmp_path / "runs")
    status = ("status", run, "--store", "files:runs")
    assert f"{ROOT / 'pipeline.sh'} lessons --resume {run}" in pipeline(*status, cwd=tmp_path).stdout
    status = ("status", run, "--store", f"files:{tmp_path / 'runs'}")
    assert f" ./pipeline.sh lessons --resume {run}" in pipeline(*status, cwd=ROOT).stdout


def test_env_file_beside_the_program_is_read_and_not_printed(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    (home / ".env").write_text("PIPELINE_LIST_STATUS=completed\nPIPELINE_JSON=1\nhush hush secret\n")
    failed_run(home / "devops" / "checkpoints")
    run = completed_run(home / "devops" / "checkpoints")
    said = pipeline("list", cwd=tmp_path, PYTHONPATH=str(home))
    assert said.returncode == 0
    assert [line.split('"run_id":"')[1].partition('"')[0] for line in said.stdout.splitlines()] == [run]
    assert "line 3" in said.stderr
    assert "secret" not in said.stderr
    set_wins = pipeline("list", cwd=tmp_path, PYTHONPATH=str(home), PIPELINE_LIST_STATUS="failed")
    assert run not in set_wins.stdout
    assert set_wins.stdout


def test_exit_code_is_the_commands_and_one_that_is_mistyped_is_told_its_name(cli: Cli) -> None:
    for words, code, told in (
        ("", 0, ""), ("help", 0, ""), ("lesson", 2, "No such command 'lesson'. Did you mean lessons?"),
        ("xyz", 2, "No such command 'xyz'."), ("status nix", 3, "'nix'"),
        # The home of nobody is the name of a folder.
        ("list --store files:~nobody-of-that-name/x", 0, ""),
    ):  # fmt: skip
        said = cli(*words.split())
        assert (said.code, bool(said.out), told in said.err) == (code, code == 0, True), words


def test_completion_knows_commands_options_statuses_and_runs(
    root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = completed_run(root)
    monkeypatch.setenv("_PIPELINE_COMPLETE", "bash_complete")

    def complete(words: str) -> list[str]:
        monkeypatch.setenv("COMP_WORDS", f"pipeline.sh {words}")
        monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
        said = cli()
        assert (said.code, said.err) == (0, "")
        return [line.partition(",")[2] for line in said.out.splitlines() if line]

    assert complete("l") == ["lessons", "list", "log"]
    assert "--resumable" in complete("list --res")
    for words, found in (
        ("list --status comp", ["completed"]), ("status 2026", [run]), ("lessons --resume la", ["latest"]),
        ("lessons --subject ph", ["physics"]), ("lessons --level nat", ["national_3", "national_4", "national_5"]),
        ("show latest le", ["lessons"]), ("run my/ex", ["my/ex"]),
    ):  # fmt: skip
        assert complete(words) == found, words
    monkeypatch.setenv("PIPELINE_STORE", f"files:{root}/{run}/journal.jsonl")
    assert complete("status 2026") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_one_its_shell_reads(tmp_path: Path, shell: str) -> None:
    script = pipeline("completion", shell, cwd=tmp_path).stdout
    assert f"_PIPELINE_COMPLETE={shell}_complete" in script
    assert f" {ROOT / 'pipeline.sh'})" in script, "the program need not be on the PATH"
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not here to read it")
    checked = subprocess.run([found, "-n"], input=script, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("group", ["bank", "budget", "store", "subjects"])
def test_help_of_a_group_tells_each_command_whole(cli: Cli, group: str) -> None:
    listed = cli(group, "--help").out.partition("Commands:")[2].splitlines()
    assert listed
    assert not [line for line in listed if line.endswith("...")]


def test_installed_copy_completes_and_helps_under_its_own_name(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "is_installed", lambda: True)
    for shell in ("bash", "zsh", "fish"):
        script = cli("completion", shell).out
        assert ("course-pipeline" in script, "pipeline.sh" in script) == (True, False), script
    said = cli("list", "--lable", "team=maths")
    assert ("Try 'course-pipeline list --help' for help." in said.err, "pipeline.sh" in said.err) == (True, False)


def test_completion_in_bash_offers_what_the_program_says(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    program = tmp_path / "pipeline.sh"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m pipeline "$@"\n')
    program.chmod(0o755)
    script = pipeline("completion", "bash", cwd=tmp_path).stdout.replace(str(ROOT / "pipeline.sh"), str(program))
    ask = 'COMP_WORDS=(./pipeline.sh his); COMP_CWORD=1; _pipelinesh_completion; echo "${COMPREPLY[@]}"'
    said = subprocess.run([bash, "-c", f"{script}\n{ask}"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (said.stdout, said.stderr) == ("history\n", "")


COURSE = ("lessons", "--subject", "mathematics", "--level", "national_5", "--lessons", "1", "--store", "files:runs")


def through_shell(redirection: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The program with its streams as a shell's redirection leaves them."""
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-P", "-m", "pipeline", *arguments]
    return subprocess.run(command, cwd=cwd, env=surroundings(), capture_output=True, encoding="utf-8", check=False)


@pytest.mark.parametrize("redirection", ["<&- >&- 2>&-", ">/dev/full 2>/dev/full"])
def test_run_is_made_whatever_the_streams_are(tmp_path: Path, redirection: str) -> None:
    said = through_shell(redirection, *COURSE, "--out", "out", cwd=tmp_path)
    assert said.returncode == 0
    assert (tmp_path / "out" / "course_c84775-draft" / "index.html").is_file()


@pytest.mark.parametrize("arguments", [("list",), ("list", "--json"), ("--help",)])
@pytest.mark.parametrize(("redirection", "code"), [(">&-", 0), (">/dev/full", 1)])
def test_command_that_only_writes_says_where_it_cannot(
    tmp_path: Path, arguments: tuple[str, ...], redirection: str, code: int
) -> None:
    completed_run(tmp_path / "runs")
    store = ("--store", "files:runs") if arguments[-1] != "--help" and arguments[0] == "list" else ()
    said = through_shell(redirection, *arguments, *store, cwd=tmp_path)
    assert said.returncode == code, said.stderr
    assert said.stderr == ("Error: stdout cannot be written: No space left on device.\n" if code else "")
