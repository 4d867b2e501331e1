"""`bank`: topics checked and shown, and lessons drawn from a folder of one's own."""

from __future__ import annotations

from pathlib import Path

from tests.said import Cli

TOPIC = Path(__file__).parents[2] / "devops" / "docs" / "examples" / "topic.yaml"


def test_check_names_what_is_wrong_and_says_how_many_questions_there_are(cli: Cli, tmp_path: Path) -> None:
    said = cli("bank", "check", str(TOPIC), "--draws", "10")
    assert (said.code, said.out.splitlines()[-1]) == (0, "1 topic, 0 findings.")
    assert any(line.split() == ["solve", "792", "100%", "10", "of", "10", "0"] for line in said.out.splitlines())
    bad = tmp_path / "bad.yaml"
    bad.write_text(TOPIC.read_text(encoding="utf-8").replace("answer: v\n", "answer: v + 1\n"), encoding="utf-8")
    said = cli("bank", "check", str(tmp_path), "--draws", "10")
    assert said.code == 1
    assert f"{bad}:90: solve: last line of working does not show the answer" in said.out
    row = cli("bank", "check", str(bad), "--draws", "3", "--json").json()[0]
    assert {finding["line"] for finding in row["findings"]} == {85, 90}
    assert cli("bank", "check", str(tmp_path / "none")).code == 2


def test_show_prints_the_same_questions_for_the_same_seed(cli: Cli, tmp_path: Path) -> None:
    said = cli("bank", "show", str(TOPIC), "--seed", "3", "--id", "off", "--count", "2")
    assert said.out == cli("bank", "show", str(TOPIC), "--seed", "3", "--id", "off", "--count", "2").out
    assert (said.code, said.out.count("[off "), "hint: What is one per cent?" in said.out) == (0, 2, True)
    rows = cli("bank", "show", "num.surds", "--json").json()
    assert {"question", "seed", "place", "hash", "level", "item"} <= rows[0].keys()
    (tmp_path / "own.yaml").write_bytes(TOPIC.read_bytes())
    assert "percentages" in cli("bank", "show", "num.percent", "--bank", str(tmp_path)).out
    assert cli("bank", "show", "num.percent").code == 2
    unknown = cli("bank", "show", str(TOPIC), "--id", "other")
    assert (unknown.code, "There are example1, times" in unknown.err) == (2, True)


def test_a_draft_is_pinned_to_the_topics_it_was_drawn_from(cli: Cli, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    text = TOPIC.read_text(encoding="utf-8").replace("num.percent", "num.surds")
    (own / "topic.yaml").write_text(text, encoding="utf-8")
    course = ["--subject", "maths", "--level", "n5", "--model", "offline", "--sample", "1", "--bank", str(own)]
    assert cli("lessons", *course).code == 0
    assert cli("lessons", "--resume", "latest", "--sample", "1").code == 0
    (own / "topic.yaml").write_text(text.replace("percentages", "per cent"), encoding="utf-8")
    refused = cli("lessons", "--resume", "latest", "--sample", "1")
    assert (refused.code, "made from other topics" in refused.err) == (2, True)
    assert cli("lessons", "--resume", "latest", "--sample", "1", "--accept-changes").code == 0
