"""Mutates MLIR text by words: deletes, repeats, swaps and replaces them."""

import re
from random import Random

_WORD = re.compile(
    r'"(?:[^"\\]|\\.)*"|%[\w$.#-]+|@[\w$.-]+|\^\w+|[!#][\w.]+|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?'
    r"|[A-Za-z_][\w.$]*|->|\s+|."
)
_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">"}
NUMBERS = (
    *("0", "1", "-1", "2", "3", "7", "64", "2147483647", "2147483648", "-2147483648"),
    *("4294967296", "9223372036854775807", "9223372036854775808", "-9223372036854775808"),
    *("1099511627776", "1" + "0" * 30, "0.5", "1e400"),
)
STRINGS = (
    *('"n"', '"?"', '"1+k"', '"n*m"', '"-n"', '"n floordiv 0"', '""', '"\\FF\\FE"', '"\\00"'),
    *('"n mod 2"', '"9223372036854775807*n"', '"k"', '"n <= 4"', '"n == m"', '"main"', '"a b"'),
)
NAMES = (
    *("f32", "f64", "f16", "bf16", "i1", "i8", "i32", "i64", "index", "i4", "i128"),
    *("f8E4M3FN", "f8E5M2", "ui8", "ui64"),
    *("none", "tensor<f32>", "tensor<?x4xf32>", "tensor<*xf32>", "memref<4xf32>", "vector<4xf32>"),
    *("complex<f32>", "tuple<>", "!graph.object", '!graph.shape_value<["n"]>', "unit", "true"),
    *(
        '#graph.shape<["n", 4]>',
        "array<i64>",
        "array<i64: 1>",
        "array<f16: 1.0>",
        "array<i32: 1, 1>",
        "dense<1.0>",
    ),
    *("[]", "{}", "?", "tensor<4xi8>", "tensor<4x!graph.object>", "tensor<?xf32, 1 : i64>"),
)
_VALUES = {"0": NUMBERS, '"': STRINGS, "a": NAMES}
_SEGMENTS = re.compile(r"(operand|result)SegmentSizes = array<[^>]*>,?")


def damage(text: str, random: Random) -> str:
    """The text with one to three changes."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        text = random.choice(_CHANGES)(text, random)
    return text


def _kind(word: str) -> str:
    """The replacements of a word: words of the same kind."""
    if word[0].isdigit() or (word[0] == "-" and word != "->"):
        return "0"
    return "a" if word[0].isalpha() else word[0]


def _replace_word(text: str, random: Random) -> str:
    words = _WORD.findall(text)
    positions = [i for i, word in enumerate(words) if not word.isspace()]
    if not positions:
        return text
    at = random.choice(positions)
    kind = _kind(words[at])
    others = [word for word in words if not word.isspace() and _kind(word) == kind]
    if kind in _VALUES and random.random() < 0.7:
        others = list(_VALUES[kind])
    words[at] = random.choice(others)
    return "".join(words)


def _replace_number(text: str, random: Random) -> str:
    matches = list(re.finditer(r"-?\b\d+", text))
    if not matches:
        return text
    match = random.choice(matches)
    return text[: match.start()] + random.choice(NUMBERS) + text[match.end() :]


def _delete_words(text: str, random: Random) -> str:
    words = _WORD.findall(text)
    at = random.randrange(len(words)) if words else 0
    del words[at : at + random.choice((1, 1, 2, 4))]
    return "".join(words)


def _repeat_word(text: str, random: Random) -> str:
    words = _WORD.findall(text)
    if words:
        at = random.randrange(len(words))
        words.insert(random.randrange(len(words)), words[at])
    return "".join(words)


def _swap_words(text: str, random: Random) -> str:
    words = _WORD.findall(text)
    if len(words) > 1:
        a, b = random.sample(range(len(words)), 2)
        words[a], words[b] = words[b], words[a]
    return "".join(words)


def _change_line(text: str, random: Random) -> str:
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    at, to = random.randrange(len(lines)), random.randrange(len(lines))
    change = random.randrange(3)
    if change == 0:
        del lines[at]
    elif change == 1:
        lines.insert(to, lines[at])
    else:
        lines[at], lines[to] = lines[to], lines[at]
    return "".join(lines)


def _change_group(text: str, random: Random) -> str:
    """Deletes the contents of a pair of brackets, or deletes or repeats an item of it."""
    positions = [i for i, char in enumerate(text) if char in _PAIRS]
    if not positions:
        return text
    start = random.choice(positions)
    end = text.find(_PAIRS[text[start]], start)
    if end < 0:
        return text
    items = text[start + 1 : end].split(",")
    at = random.randrange(len(items))
    change = random.randrange(3)
    items = [items[:at] + items[at + 1 :], items[:at] + items[at:][:1] * 2 + items[at + 1 :], []][
        change
    ]
    return text[: start + 1] + ",".join(items) + text[end:]


def _drop_segments(text: str, random: Random) -> str:
    matches = list(_SEGMENTS.finditer(text))
    if not matches:
        return _replace_word(text, random)
    match = random.choice(matches)
    return text[: match.start()] + text[match.end() :]


_CHANGES = (
    *(_replace_word, _replace_word, _replace_word, _replace_number, _replace_number),
    *(_delete_words, _repeat_word, _swap_words, _change_line, _change_group, _drop_segments),
)


def flip_bits(data: bytes, random: Random) -> bytes:
    """The bytes with some bits flipped, some bytes replaced, or truncated."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        at = random.randrange(len(changed))
        changed[at] = random.choice((changed[at] ^ (1 << random.randrange(8)), 0, 255, 127))
    if random.random() < 0.1:
        del changed[random.randrange(len(changed)) :]
    return bytes(changed)
