"""Edits of source code as bytes: moved spans, edits in several passes, and reported edits and lines."""

from hypothesis import given
from hypothesis import strategies as st

from simllm.perturb.code.edits import Edit, Piece, Span, apply_edits, compose, line_map, text_edits


def text_of(pieces):
    return b"".join(piece.text for piece in pieces)


def test_moved_spans_take_the_edits_inside_along():
    source = b"if (a) {X} else {Y}"
    edits = [
        Edit(4, 5, (b"!", Span(4, 5))),
        Edit(7, 10, (Span(16, 19),)),
        Edit(16, 19, (Span(7, 10),)),
        Edit(8, 9, (b"xx",)),
        Edit(9, 9, (b";",)),
        Edit(19, 19, (b" end",)),
    ]
    assert text_of(apply_edits(source, edits)) == b"if (!a) {Y} else {xx;} end"


def test_an_empty_span_holds_the_insertions_at_its_byte():
    source = b"x\ny"
    edits = [Edit(0, 1, (b"x", b"\n", Span(2, 2), b"z")), Edit(2, 2, (b"  ",))]
    assert text_of(apply_edits(source, edits)) == b"x\n  z\n  y"


@st.composite
def edited(draw):
    """Draw a text and disjoint edits; each edit replaces a span of the text, maybe empty, by new bytes."""
    words = st.sampled_from([b"a", b"bc", b"\n", b" ", "é".encode(), b""])
    parts = draw(st.lists(words, max_size=12))
    places = [0]
    for part in parts:
        places.append(places[-1] + len(part))
    cuts = sorted(draw(st.lists(st.sampled_from(places), max_size=6)))
    edits = []
    for start, end in zip(cuts[::2], cuts[1::2], strict=False):
        edits.append(Edit(start, end, (draw(words), b"+", draw(words))))
    return b"".join(parts), edits


def plainly(source, edits):
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.start != edit.end), reverse=True):
        source = source[: edit.start] + b"".join(edit.parts) + source[edit.end :]
    return source


@given(edited())
def test_reported_edits_give_the_edited_text(case):
    source, edits = case
    distinct = list({edit.start: edit for edit in edits}.values())
    pieces = apply_edits(source, distinct)
    assert text_of(pieces) == plainly(source, distinct)
    text = source.decode()
    for edit in reversed(text_edits(source, pieces)):
        text = text[: edit.start] + edit.text + text[edit.end :]
    assert text.encode() == text_of(pieces)
    assert len(line_map(source, pieces)) == len(text.encode().splitlines())


@given(edited(), st.data())
def test_composed_passes_keep_the_places_of_the_first_source(case, data):
    source, edits = case
    first = apply_edits(source, {edit.start: edit for edit in edits}.values())
    middle = text_of(first)
    at = data.draw(st.integers(0, len(middle)))
    second = apply_edits(middle, [Edit(at, at, (b"#",))])
    both = compose(first, second)
    assert text_of(both) == middle[:at] + b"#" + middle[at:]
    for piece in both:
        if piece.start is not None:
            assert source[piece.start : piece.start + len(piece.text)] == piece.text


def test_lines_are_mapped_to_the_lines_of_their_first_code():
    pieces = [Piece(b"a\n", 0), Piece(b"new\n", None), Piece(b"  ", None), Piece(b"c", 4), Piece(b"\nb", 1)]
    assert line_map(b"a\nb\nc\n", pieces) == [1, None, 3, 2]


def test_the_end_of_a_text_is_no_line():
    assert line_map(b"a\nb\n", [Piece(b"a\nb\n", 0)]) == [1, 2]
    assert line_map(b"a\nb", [Piece(b"a\nb", 0)]) == [1, 2]
    assert line_map(b"a\n\n", [Piece(b"a\n\n", 0)]) == [1, None]
    assert line_map(b"", []) == []
