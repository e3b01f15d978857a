"""Mutations of model files: what a damaged or malicious file may hold, at places that count."""

import json
import random
import struct
from collections.abc import Iterator
from typing import Any

from gguf.constants import GGUFValueType

NUMBERS = [0, 1, -1, 3, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
DEEP = "[" * 200 + "]" * 200
"""JSON text, as are the others: Python writes no integers of thousands of digits."""
VALUES = [
    *("null", "true", "[]", "{}", '""', '"x"', "-1", "0", "1.5", "-0.0", "1e400", "-1e400", "NaN"),
    *("Infinity", "-Infinity", "9" * 400, "-" + "9" * 400, "9" * 5000, "[" * 100_000, DEEP),
    *(r'"\ud800"', r'"\u0000"', r'"\u001b[2J\n"', '"' + "a" * 10_000 + '"', "[null]", "[[1, 2]]"),
    *('{"content": 3}', '{"type": "BPE"}', "[1, 2, 3, 4, 5]", '"../../etc/passwd"', '"F64"'),
    *(str(number) for number in NUMBERS),
]
_SIZES = {0: 1, 1: 1, 7: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4}


def mutated_json(text: str, generator: random.Random) -> str:
    """JSON text with some of its nodes replaced, left out or said twice."""
    root = json.loads(text)
    for _ in range(generator.choice([1, 1, 1, 2, 3])):
        mark = "\x01hostile"
        places = list(_places(root))
        if not places:
            return generator.choice(VALUES)
        holder, key = generator.choice(places)
        action = generator.choice(["replace"] * 6 + ["drop", "move"])
        if action == "drop":
            del holder[key]
        elif action == "move":
            other, place = generator.choice(places)
            holder[key] = json.loads(json.dumps(other[place]))
        else:
            holder[key] = mark
            text = json.dumps(root).replace(json.dumps(mark), generator.choice(VALUES), 1)
            try:
                root = json.loads(text)
            except (ValueError, RecursionError):
                return text
    return json.dumps(root)


def mutated_entries(text: str, generator: random.Random) -> str:
    """A JSON object with one or two of its entries near what they were, or out of range."""
    entries = json.loads(text)
    for key in generator.sample(sorted(entries), generator.choice([1, 1, 2])):
        value = entries[key]
        others = [None, True, 0, -1, 2**31 - 1, 2**63, 1e-300, 1e300, "x", [], {}, [value]]
        if isinstance(value, int | float):
            others += [value + 1, value - 1, 2 * value, value / 2, float(value)]
        if isinstance(value, list):
            others += [3 * value, value[:-1], [*value, 10**9]]
        if isinstance(value, dict) and value:
            inner = generator.choice(sorted(value))
            others += 3 * [{**value, inner: generator.choice([0, -1, 1e300, None, "x"])}]
        entries[key] = generator.choice(others)
    return json.dumps(entries)


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Holder and key of nodes; of long lists, of the first ones."""
    if isinstance(node, dict | list):
        keys = list(node)[:40] if isinstance(node, dict) else range(min(len(node), 8))
        for key in keys:
            yield node, key
            yield from _places(node[key])


def mutated_bytes(data: bytes, generator: random.Random, fields: list[tuple[int, int]]) -> bytes:
    """A file with integers, bytes or pieces changed; `fields` are places and sizes of integers."""
    changed = bytearray(data)
    for _ in range(generator.choice([1, 1, 2, 4])):
        kind = generator.random()
        at, size = generator.choice(fields)
        if kind < 0.6:
            number = generator.choice([*NUMBERS, generator.getrandbits(64)]) % 256**size
            changed[at : at + size] = number.to_bytes(size, "little")
        elif kind < 0.8:
            changed[min(at + generator.randrange(40), len(changed) - 1)] = generator.randrange(256)
        elif kind < 0.9:
            del changed[at : at + generator.choice([1, 4, 8, 100])]
        else:
            changed[at:at] = changed[at : at + generator.choice([4, 8, 100])]
    return bytes(changed)


def gguf_fields(data: bytes) -> list[tuple[int, int]]:
    """Place and size of each integer of a file's header: counts, lengths, types, dims, offsets."""
    found: list[tuple[int, int]] = [(4, 4)]
    place = 8

    def integer(size: int) -> int:
        nonlocal place
        found.append((place, size))
        place += size
        return int.from_bytes(data[place - size : place], "little")

    def string() -> None:
        nonlocal place
        length = integer(8)  # apart, since it changes the place
        place += length

    def value(kind: int) -> None:
        if kind == GGUFValueType.STRING:
            string()
        elif kind == GGUFValueType.ARRAY:
            inner, count = integer(4), integer(8)
            for _ in range(count):
                value(inner)
        else:
            integer(_SIZES.get(kind, 8))

    tensors, keys = integer(8), integer(8)
    for _ in range(keys):
        string()
        value(integer(4))
    for _ in range(tensors):
        string()
        for _ in range(integer(4)):
            integer(8)
        integer(4)
        integer(8)
    return found


def safetensors_parts(data: bytes) -> tuple[str, bytes]:
    """The table of a file and the bytes behind it."""
    (length,) = struct.unpack_from("<Q", data)
    return data[8 : 8 + length].decode(), data[8 + length :]


def safetensors(table: str, rest: bytes) -> bytes:
    """A file of such parts."""
    text = table.encode(errors="replace")
    return struct.pack("<Q", len(text)) + text + rest
