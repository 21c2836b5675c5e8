"""Text stays text."""

from __future__ import annotations

from tc.tuner.report.markup import element, render


def test_text_and_attributes_are_escaped() -> None:
    node = element("a", "<b>&\"'", title='"><script>', class_="x")
    assert render(node) == '<a title="&quot;&gt;&lt;script&gt;" class="x">&lt;b&gt;&amp;&quot;&#x27;</a>'


def test_nothing_is_left_of_what_a_document_may_not_hold() -> None:
    text = render(element("p", "a\x00b\ud800c\u202ed\n\te"))
    assert text == "<p>a\ufffdb\ufffdc\ufffdd\n\te</p>"
    text.encode("utf-8")


def test_content_may_be_nested_or_missing() -> None:
    node = element("g", None, ["a", None, (element("br"), "b")], x=1.25, y=2.0, title=None)
    assert render(node) == '<g x="1.25" y="2">a<br>b</g>'
