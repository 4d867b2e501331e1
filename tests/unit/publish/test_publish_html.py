"""Markup escapes by construction."""

from __future__ import annotations

import pytest

from pipeline.html import Html, el, join, slug, text


def test_text_escapes_markup_and_leaves_markup_alone() -> None:
    assert text('<b> & "q"') == '&lt;b&gt; &amp; "q"'
    assert text(el("b", "x")) == "<b>x</b>"
    # Joined by hand it is no markup any more.
    assert text(el("b", "x") + "<i>") == "&lt;b&gt;x&lt;/b&gt;&lt;i&gt;"


def test_el_escapes_children_and_attribute_values() -> None:
    made = el("p", "</p><script>alert(1)</script>", title='" onload="x')
    assert made == '<p title="&quot; onload=&quot;x">&lt;/p&gt;&lt;script&gt;alert(1)&lt;/script&gt;</p>'


def test_el_flattens_lists_leaves_out_none_and_false_and_closes_all_but_void_elements() -> None:
    made = el("ul", None, [el("li", 1), [False, el("li", "2")]], hidden=True, id=None, cls="a")
    assert made == '<ul hidden class="a"><li>1</li><li>2</li></ul>'
    assert el("br") == "<br>"
    assert el("mspace", width="1em") == '<mspace width="1em"></mspace>'
    assert join(["a", None, el("b", "c")], " & ") == "a &amp; <b>c</b>"
    assert isinstance(join([]), Html)


def test_el_takes_links_inside_the_folder_and_refuses_others() -> None:
    for link in ("index.html", "../index.html", "lessons/01-a.html#q-1", "#main", "../answers/02-b.html#q1"):
        assert f'href="{link}"' in el("a", "x", href=link)
    for link in ("javascript:alert(1)", "http://example.org/", "//example.org/x", "/etc/passwd", "a/../../b", "../../x",
                 "data:,x", "a b", " javascript:x", "\tx:y"):  # fmt: skip
        with pytest.raises(ValueError, match="leaves the published folder"):
            el("a", "x", href=link)


def test_el_refuses_names_that_run_style_or_are_none() -> None:
    for name in ("onclick", "style", 'x" y', "a b"):
        with pytest.raises(ValueError, match="not an attribute"):
            el("p", "x", **{name: "1"})
    with pytest.raises(ValueError, match="not an element name"):
        el("p><script", "x")


def test_text_replaces_what_a_page_cannot_carry() -> None:
    made = text("a\x00b\ud800c\ufffed\x85e")
    assert made == "a\ufffdb\ufffdc\ufffdd\ufffde"
    made.encode("utf-8")


def test_slug_is_a_short_plain_name() -> None:
    for title, wanted in (
        ("Simplifying surds", "simplifying-surds"), ("../../etc/passwd", "etc-passwd"), ("数学", "lesson"),
        ("Gàidhlig: àireamhan", "gaidhlig-aireamhan"), ("", "lesson"), ("x" * 90, "x" * 48),
        ("one two three four five six seven eight nine ten eleven", "one-two-three-four-five-six-seven-eight-nine-ten"),
    ):  # fmt: skip
        assert slug(title) == wanted
