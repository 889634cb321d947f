"""Frames survive any cuts and any garbage; text that is too long says how much of it is left out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from debug_gym_core.errors import SandboxLost
from debug_gym_core.sandbox.frames import FrameReader, PrintedOutput, decode_output, pack


@given(
    st.lists(
        st.tuples(
            st.dictionaries(st.text(), st.one_of(st.integers(), st.text(), st.none(), st.booleans())), st.binary()
        ),
        max_size=5,
    ),
    st.integers(1, 50),
)
def test_frames_survive_any_cuts(frames: list[tuple[dict[str, object], bytes]], size: int) -> None:
    frames = [({"id": 1, "t": "done", "fields": fields}, body) for fields, body in frames]
    data = b"".join(pack(header, body) for header, body in frames)
    reader = FrameReader()
    received = [frame for start in range(0, len(data), size) for frame in reader.feed(data[start : start + size])]
    assert received == frames


@given(st.binary(min_size=8, max_size=100))
def test_garbage_is_lost_or_incomplete_never_a_crash(data: bytes) -> None:
    try:
        list(FrameReader().feed(data))
    except SandboxLost as error:
        assert "corrupt" in str(error) or "cannot be understood" in str(error)


@given(st.text(max_size=200), st.integers(0, 300), st.integers(0, 300))
def test_cut_text_is_a_prefix_and_a_suffix(text: str, first: int, second: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    data = text.encode()
    start, end = sorted((min(first, len(data)), min(second, len(data))))
    output, cut = decode_output(data[:start], data[end:], end - start)
    if start == end:
        assert (output, cut) == (text, 0)
        return
    head, marker, tail = output.partition(f"[... {cut} bytes left out ...]\n")
    assert marker
    head = head if text.startswith(head) else head[:-1]
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head.encode()) + len(tail.encode()) + cut == len(data)


@given(st.lists(st.binary(max_size=200), max_size=20), st.integers(2, 60))
def test_printed_output_is_bounded_and_counts(pieces: list[bytes], limit: int) -> None:
    """Whether a piece comes whole or already cut by the guest."""
    pieces = [piece.replace(b"\n", b"-").decode("latin-1").encode("ascii", "replace") for piece in pieces]
    printed = PrintedOutput(limit)
    half = limit // 2
    for piece in pieces:
        if len(piece) > limit:
            tail = piece[len(piece) - (limit - half) :]
            printed.add({"head": half, "cut": len(piece) - limit}, piece[:half] + tail)
        else:
            printed.add({}, piece)
    whole = b"".join(pieces).decode()
    text, cut = printed.take()
    assert printed.take() == ("", 0)
    if len(whole) <= limit:
        assert (text, cut) == (whole, 0)
        return
    head, marker, tail_text = text.partition(f"\n[... {cut} bytes left out ...]\n")
    assert marker
    assert whole.startswith(head)
    assert whole.endswith(tail_text)
    assert len(head) + len(tail_text) + cut == len(whole)
    assert len(head) + len(tail_text) <= limit
