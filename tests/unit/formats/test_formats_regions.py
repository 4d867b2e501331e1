"""Which node gathers a fan-out, and what lies in it, over shapes that people draw."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize(
    ("edges", "gathered"),
    [
        # The nearest fan-in of all branches; an inner fan-out has the inner one, or ends in the outer one.
        ("s>P P>a P>b a>c c>J b>J J>Q Q>x Q>y x>K y>K K>e", {"P": "J", "Q": "K"}),
        ("s>P P>Q P>b Q>x Q>y x>K y>K K>J b>J J>e", {"P": "J", "Q": "K"}),
        ("s>P P>Q P>b Q>x Q>y x>J y>J b>J J>e", {"P": "J", "Q": "J"}),
        # Branches of an inner fan-out that meet before the outer fan-in end there.
        ("s>P P>Q P>b Q>x Q>y x>m y>m m>J b>J J>e", {"P": "J", "Q": "m"}),
        # The fan-in of a later fan-out is not taken.
        ("s>P P>a P>b a>m b>m m>Q Q>x Q>y x>K y>K K>e", {"P": "m", "Q": "K"}),
        # A node that branches share before their fan-in is no join.
        ("s>P P>a P>b a>m b>m m>J J>e", {"P": "J"}),
        # Fan-outs in a row inside of a branch keep their own fan-ins.
        ("s>P P>Q P>b Q>x Q>y x>K y>K K>R R>u R>v u>K2 v>K2 K2>J b>J J>e", {"P": "J", "Q": "K", "R": "K2"}),
        # Branches that meet nowhere are not gathered, nor is a single one without a fan-in.
        ("s>P P>a P>b a>e b>e2 e2>z", {"P": ""}),
        ("s>P P>a a>e", {"P": ""}),
        # A loop back to before the fan-out changes nothing.
        ("s>p p>P P>a P>b a>J b>J J>e J>p a>p", {"P": "J"}),
    ],
)
def test_node_that_gathers_a_fan_out(edges: str, gathered: dict[str, str]) -> None:
    assert {name: fan.gather for name, fan in regions(edges).fans.items()} == gathered


def test_what_lies_between_a_fan_out_and_its_fan_in() -> None:
    found = regions("s>P P>a P>b a>c c>J b>J J>Q Q>x Q>y x>K y>K K>e")
    assert set(found.fans["P"].members) == {"a", "b", "c"}
    assert (found.around["c"], found.around["J"], found.around["x"]) == (("P",), (), ("Q",))
    found = regions("s>P P>Q P>b Q>x Q>y x>K y>K K>J b>J J>e")
    assert (found.around["x"], found.around["Q"], found.around["K"]) == (("Q", "P"), ("P",), ("P",))
    assert (found.scope("J"), found.scope("K"), found.scope("x")) == (("P",), ("Q",), ())
    found = regions("s>P P>Q P>b Q>x Q>y x>J y>J b>J J>e")
    assert (found.scope("J"), found.gather_of("x")) == (("P",), "J")
    assert regions("s>P P>a P>b a>m b>m m>J J>e").fans["P"].members["m"] == 0b11
    assert not regions("s>P P>a P>b a>m b>m m>Q Q>x Q>y x>K y>K K>e").fans["P"].drawn
    apart = regions("s>P P>a P>b a>e b>e2 e2>z")
    assert (apart.around["a"], apart.gather_of("a")) == (("P",), "")
    assert set(regions("s>p p>P P>a P>b a>J b>J J>e J>p a>p").fans["P"].members) == {"a", "b"}


def test_either_of_two_fan_outs_may_come_to_one_fan_in() -> None:
    found = regions("s>P s>Q P>a P>b Q>x Q>y a>J b>J x>J y>J J>e")
    assert set(found.scope("J")) == {"P", "Q"}


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


def test_wide_fan_out_is_no_trouble() -> None:
    wide = " ".join(f"P>b{number} b{number}>J" for number in range(1000))
    found = regions(f"s>P {wide} J>e")
    assert (found.fans["P"].gather, len(found.fans["P"].members)) == ("J", 1000)
