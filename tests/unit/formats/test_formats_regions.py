"""Which node gathers a fan-out, and what lies in it, over shapes that people draw."""

from __future__ import annotations

from pipeline.dot.parser import parse
from pipeline.formats.attractor.regions import Regions

SHAPES = {"P": "component", "Q": "component", "R": "component", "J": "tripleoctagon", "K": "tripleoctagon"}


def regions(edges: str) -> Regions:
    """Edges "s>a a>b"; the nodes' first letters say what they are; s starts, e ends."""
    pairs = [pair.split(">") for pair in edges.split()]
    names = dict.fromkeys(name for pair in pairs for name in pair)
    shapes = {**SHAPES, "s": "Mdiamond", "e": "Msquare"}
    lines = [f"{name} [shape={shapes.get(name[0], 'box')}]" for name in names]
    lines += [f"{source} -> {target}" for source, target in pairs]
    dot = parse("digraph g {\n" + "\n".join(lines) + "\n}")
    return Regions(dot, {name: dot.kind(name) for name in dot.nodes})


def gathers(found: Regions) -> dict[str, str]:
    return {name: fan.gather for name, fan in found.fans.items()}


def test_nearest_fan_in_of_all_branches_gathers_them() -> None:
    found = regions("s>P P>a P>b a>c c>J b>J J>Q Q>x Q>y x>K y>K K>e")
    assert gathers(found) == {"P": "J", "Q": "K"}
    assert set(found.fans["P"].members) == {"a", "b", "c"}
    assert (found.around["c"], found.around["J"], found.around["x"]) == (("P",), (), ("Q",))


def test_inner_fan_out_has_the_inner_fan_in() -> None:
    found = regions("s>P P>Q P>b Q>x Q>y x>K y>K K>J b>J J>e")
    assert gathers(found) == {"P": "J", "Q": "K"}
    assert (found.around["x"], found.around["Q"], found.around["K"]) == (("Q", "P"), ("P",), ("P",))
    assert (found.scope("J"), found.scope("K"), found.scope("x")) == (("P",), ("Q",), ())


def test_inner_fan_out_may_end_in_the_outer_fan_in() -> None:
    found = regions("s>P P>Q P>b Q>x Q>y x>J y>J b>J J>e")
    assert gathers(found) == {"P": "J", "Q": "J"}
    assert found.scope("J") == ("P",)
    assert found.gather_of("x") == "J"


def test_inner_fan_out_whose_branches_meet_before_the_outer_fan_in_ends_there() -> None:
    found = regions("s>P P>Q P>b Q>x Q>y x>m y>m m>J b>J J>e")
    assert gathers(found) == {"P": "J", "Q": "m"}
    assert (found.around["x"], found.around["m"]) == (("Q", "P"), ("P",))


def test_fan_in_of_a_later_fan_out_is_not_taken() -> None:
    found = regions("s>P P>a P>b a>m b>m m>Q Q>x Q>y x>K y>K K>e")
    assert gathers(found) == {"P": "m", "Q": "K"}
    assert not found.fans["P"].drawn


def test_node_that_branches_share_before_their_fan_in_is_no_join() -> None:
    found = regions("s>P P>a P>b a>m b>m m>J J>e")
    assert gathers(found) == {"P": "J"}
    assert found.fans["P"].members["m"] == 0b11


def test_fan_outs_in_a_row_inside_of_a_branch_keep_their_own_fan_ins() -> None:
    found = regions("s>P P>Q P>b Q>x Q>y x>K y>K K>R R>u R>v u>K2 v>K2 K2>J b>J J>e")
    assert gathers(found) == {"P": "J", "Q": "K", "R": "K2"}


def test_branches_that_meet_nowhere_are_not_gathered() -> None:
    found = regions("s>P P>a P>b a>e b>e2 e2>z")
    assert gathers(found) == {"P": ""}
    assert (found.around["a"], found.gather_of("a")) == (("P",), "")


def test_either_of_two_fan_outs_may_come_to_one_fan_in() -> None:
    found = regions("s>P s>Q P>a P>b Q>x Q>y a>J b>J x>J y>J J>e")
    assert set(found.scope("J")) == {"P", "Q"}


def test_loop_back_to_before_the_fan_out_changes_nothing() -> None:
    found = regions("s>p p>P P>a P>b a>J b>J J>e J>p a>p")
    assert gathers(found) == {"P": "J"}
    assert set(found.fans["P"].members) == {"a", "b"}


def test_way_out_of_a_branch_lies_inside_until_it_is_shared_with_the_rest() -> None:
    found = regions("s>P P>a P>b a>J b>J J>r a>x x>e b>r r>e")
    assert "x" in found.fans["P"].members
    assert found.gather_of("x") == "J"


def test_jump_stays_in_its_branch() -> None:
    found = regions("s>o o>P P>a P>b a>c c>J b>d d>m c>m m>J J>e")
    assert found.one_branch("c", "a")
    assert found.one_branch("m", "a")
    assert not found.one_branch("c", "b")
    assert not found.one_branch("c", "o")
    assert not found.one_branch("J", "a")
    assert found.one_branch("J", "o")


def test_single_branch_without_a_fan_in_is_no_fan_out_to_gather() -> None:
    assert gathers(regions("s>P P>a a>e")) == {"P": ""}


def test_wide_fan_out_is_no_trouble() -> None:
    wide = " ".join(f"P>b{number} b{number}>J" for number in range(1000))
    found = regions(f"s>P {wide} J>e")
    assert (gathers(found), len(found.fans["P"].members)) == ({"P": "J"}, 1000)
