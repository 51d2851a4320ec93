"""Action strings: what is accepted, and errors that point at the segment."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sanawm_cli.camera.actions import KEYS, MAX_FRAMES, Segment, parse_action
from sanawm_cli.errors import ExitCode, InputError


def seg(keys: str, frames: int) -> Segment:
    return Segment(keys=frozenset(keys), frames=frames)


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("w-16", (seg("w", 16),)),
        ("w-20,jw-15,none-10", (seg("w", 20), seg("wj", 15), seg("", 10))),
        ("WJ-9 , none-7", (seg("wj", 9), seg("", 7))),
        ("w-1，d-2", (seg("w", 1), seg("d", 2))),
        ("  w a - 3 ", (seg("wa", 3),)),
        ("wwaw-2", (seg("wa", 2),)),
        ("NONE-4", (seg("", 4),)),
        ("ws-5", (seg("ws", 5),)),
        ("w-007", (seg("w", 7),)),
        ("w-1,w-1", (seg("w", 1), seg("w", 1))),
    ],
)
def test_reads(text, segments):
    assert parse_action(text) == segments


@pytest.mark.parametrize(
    ("text", "carets", "words"),
    [
        ("w16", "^^^", "without '-'"),
        ("w-4,d", "    ^", "without '-'"),
        ("w-4,", "    ^", "empty"),
        (",w-4", "^", "empty"),
        ("w-4, ,d-3", "     ^", "empty"),
        ("w-4, wx-3 ,d-1", "     ^^^^", "unknown key 'x'"),
        ("nonew-4", "^^^^^^^", "unknown key 'n'"),
        ("-4", "^^", "without keys"),
        ("w-0", "^^^", "'0'"),
        ("w-000", "^^^^^", "'000'"),
        ("w--3", "^^^^", "'-3'"),
        ("w-+3", "^^^^", "'+3'"),
        ("w-", "^^", "''"),
        ("w-1.5", "^^^^^", "'1.5'"),
        ("w-1 6", "^^^^^", "'1 6'"),
        ("w-1_0", "^^^^^", "'1_0'"),
        ("w-²", "^^^", "'²'"),
        ("w-٣", "^^^", "'٣'"),
        ("w-3-4", "^^^^^", "'3-4'"),
        ("d-4,\u212a-3", "    ^^^", "unknown key"),  # the Kelvin sign lowers to k
        ("w-100001", "^^^^^^^^", "100000 frames"),
        ("w-60000,d-60000", "        ^^^^^^^", "100000 frames"),
    ],
)
def test_points_at_the_segment(text, carets, words):
    with pytest.raises(InputError) as caught:
        parse_action(text)
    problem, shown, below = caught.value.message.split("\n")
    assert words in problem
    assert shown == "  " + text
    assert below == "  " + carets
    assert caught.value.exit_code == ExitCode.INPUT


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_empty_string(text):
    with pytest.raises(InputError, match="empty") as caught:
        parse_action(text)
    assert "w-40" in caught.value.hint


def test_carets_count_columns_not_characters():
    """A full-width comma takes two columns of the terminal, a combining mark none."""
    with pytest.raises(InputError) as caught:
        parse_action("w-1，x-2")
    assert caught.value.message.split("\n")[2] == "  " + " " * 5 + "^^^"
    with pytest.raises(InputError) as caught:
        parse_action("w-1,w\u0301-2")
    assert caught.value.message.split("\n")[2] == "  " + " " * 4 + "^^^"


def test_long_strings_show_only_the_surroundings():
    with pytest.raises(InputError) as caught:
        parse_action("w-1," * 500 + "q" * 300 + "-1" + ",w-1" * 500)
    _, shown, below = caught.value.message.split("\n")
    assert len(shown) < 130
    assert shown[2] == "…"
    assert shown[-1] == "…"
    assert shown[below.index("^") :].startswith("qqq")


@pytest.mark.parametrize("text", ["w-4\n,x-3", "w-4,\udc80-3", "\x1b[31m-3"])
def test_the_message_can_be_printed(text):
    with pytest.raises(InputError) as caught:
        parse_action(text)
    assert caught.value.message.count("\n") == 2
    assert caught.value.message.replace("\n", "").isprintable()


def test_a_huge_duration_costs_nothing():
    """int() of so many digits raises ValueError by itself, and the frames would fill memory."""
    for digits in ("9" * 100_000, "9" * 19, "100001"):
        with pytest.raises(InputError, match="longer than 100000 frames"):
            parse_action(f"w-{digits}")
    assert parse_action(f"w-{MAX_FRAMES}")[0].frames == MAX_FRAMES
    assert parse_action("w-" + "0" * 5000 + "12")[0].frames == 12


segments_strategy = st.lists(
    st.tuples(st.frozensets(st.sampled_from(sorted(KEYS))), st.integers(1, 5000)),
    min_size=1,
    max_size=12,
)


@given(segments_strategy, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_round_trip(segments, random):
    """However a list of segments is spelled, it reads back the same."""
    spelled = []
    for keys, frames in segments:
        letters = [c for key in sorted(keys) for c in random.choice([key, key.upper(), key * 2])]
        random.shuffle(letters)
        text = "".join(letters) or random.choice(["none", "None"])
        spelled.append(random.choice(["{}-{}", " {} - {} ", "{}-0{}"]).format(text, frames))
    text = spelled[0] + "".join(random.choice([",", "，"]) + s for s in spelled[1:])
    assert parse_action(text) == tuple(Segment(keys=k, frames=f) for k, f in segments)


@given(st.one_of(st.text(), st.text("wasdijklneo-,，0123456789 ²x", max_size=30)))
@settings(deadline=None)
def test_garbage_raises_only_input_errors(text):
    try:
        segments = parse_action(text)
    except InputError:
        return
    assert segments
    assert all(s.keys <= KEYS and s.frames > 0 for s in segments)
