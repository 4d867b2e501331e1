"""Markup escapes by construction."""

from __future__ import annotations

import pytest

from pipeline.publish.html import Html, el, join, slug, text


def test_text_escapes_markup_and_leaves_markup_alone() -> None:
    assert text('<b> & "q"') == '&lt;b&gt; &amp; "q"'
    assert text(el("b", "x")) == "<b>x</b>"


def test_el_escapes_children_and_attribute_values() -> None:
    made = el("p", "</p><script>alert(1)</script>", title='" onload="x')
    assert made == '<p title="&quot; onload=&quot;x">&lt;/p&gt;&lt;script&gt;alert(1)&lt;/script&gt;</p>'


def test_concatenated_markup_loses_its_mark_and_is_escaped() -> None:
    assert text(el("b", "x") + "<i>") == "&lt;b&gt;x&lt;/b&gt;&lt;i&gt;"


def test_el_leaves_out_none_and_false_and_flattens_lists() -> None:
    made = el("ul", None, [el("li", 1), [False, el("li", "2")]], hidden=True, id=None, cls="a")
    assert made == '<ul hidden class="a"><li>1</li><li>2</li></ul>'


def test_el_closes_every_element_but_the_void_ones_of_html() -> None:
    assert el("br") == "<br>"
    assert el("mspace", width="1em") == '<mspace width="1em"></mspace>'


@pytest.mark.parametrize(
    "link",
    ["javascript:alert(1)", "http://example.org/", "//example.org/x", "/etc/passwd", "a/../../b", "../../x", "data:,x",
     "a b", " javascript:x", "\tx:y"],
)  # fmt: skip
def test_el_refuses_links_that_leave_the_folder(link: str) -> None:
    with pytest.raises(ValueError, match="leaves the published folder"):
        el("a", "x", href=link)


@pytest.mark.parametrize(
    "link", ["index.html", "../index.html", "lessons/01-a.html#q-1", "#main", "../answers/02-b.html#q1"]
)
def test_el_takes_links_inside_the_folder(link: str) -> None:
    assert f'href="{link}"' in el("a", "x", href=link)


@pytest.mark.parametrize("name", ["onclick", "style", 'x" y', "a b"])
def test_el_refuses_attributes_that_run_or_style(name: str) -> None:
    with pytest.raises(ValueError, match="not an attribute"):
        el("p", "x", **{name: "1"})


def test_el_refuses_a_tag_that_is_not_a_name() -> None:
    with pytest.raises(ValueError, match="not an element name"):
        el("p><script", "x")


def test_text_replaces_what_a_page_cannot_carry() -> None:
    made = text("a\x00b\ud800c\ufffed\x85e")
    assert made == "a\ufffdb\ufffdc\ufffdd\ufffde"
    made.encode("utf-8")


def test_join_puts_escaped_text_between() -> None:
    assert join(["a", None, el("b", "c")], " & ") == "a &amp; <b>c</b>"
    assert isinstance(join([]), Html)


@pytest.mark.parametrize(
    ("title", "wanted"),
    [
        ("Simplifying surds", "simplifying-surds"),
        ("../../etc/passwd", "etc-passwd"),
        ("Gàidhlig: àireamhan", "gaidhlig-aireamhan"),
        ("数学", "lesson"),
        ("", "lesson"),
        ("x" * 90, "x" * 48),
        ("one two three four five six seven eight nine ten eleven", "one-two-three-four-five-six-seven-eight-nine-ten"),
    ],
)
def test_slug_is_a_short_plain_name(title: str, wanted: str) -> None:
    assert slug(title) == wanted
