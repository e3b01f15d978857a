"""Texts that end an answer, however it is cut into pieces."""

import random

import pytest

from relax_mlir.errors import UsageError
from relax_mlir.llm.tokenization.stopping import StopTexts


def cut(text: str, stops: list[str], rng: random.Random) -> tuple[list[str], bool]:
    """What is given for the pieces of a text, and whether a stop text was found."""
    found, given, begin = StopTexts(stops), [], 0
    while begin < len(text):
        end = begin + rng.randint(0, 3)
        given.append(found.push(text[begin:end]))
        begin = end
    return [*given, found.flush()], found.reached


@pytest.mark.parametrize("seed", range(20))
def test_any_pieces_give_what_is_before_the_first(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        text = "".join(rng.choices("ab", k=12))
        stops = ["".join(rng.choices("ab", k=rng.randint(1, 5))) for _ in range(rng.randint(0, 3))]
        places = [text.index(stop) for stop in stops if stop in text]
        given, found = cut(text, stops, rng)
        # With pieces a longer text may begin before a shorter one that is inside of it ends.
        assert found == bool(places)
        assert text.startswith("".join(given))
        if not found:
            assert "".join(given) == text
        elif len(stops) == 1:
            assert "".join(given) == text[: places[0]]
        else:
            assert not any(stop in "".join(given) for stop in stops)


def test_nothing_is_held_back_without_need() -> None:
    stops = StopTexts(["\n\n"])
    assert stops.push("a line\n") == "a line"
    assert stops.push("another") == "\nanother"
    assert stops.flush() == ""
    assert StopTexts([]).push("all") == "all"


def test_an_empty_text_is_refused() -> None:
    with pytest.raises(UsageError, match="a stop text is empty; expects one character or more"):
        StopTexts(["x", ""])
