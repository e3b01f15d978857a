"""Typed access to a model's metadata, so that a damaged file gives an error and not a traceback."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relax_mlir.errors import ModelError
from relax_mlir.llm.formats.model_files import parse_json, quoted, read_model_file

LEAST, MOST = 2.0**-126, 3.4e38
"""The range of float32, in which kernels have what files state."""


@dataclass(frozen=True)
class Fields:
    """The entries `values` of the file `where`; a `null` counts as missing.

    Every method raises ModelError if the entry has another type, or is missing without a default.
    """

    where: str
    values: Mapping[str, Any]
    prefix: str = ""
    """What comes before keys in the file."""

    @staticmethod
    def read_json(path: Path, *, optional: bool = False) -> "Fields":
        """Reads a JSON object from `path`; an `optional` file may be missing."""
        if optional and not path.exists():
            return Fields(str(path), {})
        values = parse_json(path, read_model_file(path))
        if not isinstance(values, dict):
            raise ModelError(f"{path}: is {quoted(values)}; expects a JSON object")
        return Fields(str(path), values)

    def refuse(self, message: str) -> ModelError:
        """An error with `message` on this file."""
        return ModelError(f"{self.where}: {message}")

    def integer(self, key: str, default: int | None = None) -> int:
        """A positive integer below 2^31."""
        value = self._get(key, default)
        holds = _is_integer(value) and 0 < value < 2**31
        self._require(holds, key, value, "a positive integer below 2^31")
        return value

    def real(self, key: str, default: float | None = None) -> float:
        """A positive number in the range of float32."""
        value = self._get(key, default)
        is_number = _is_integer(value) or isinstance(value, float)
        expected = "a positive number in the range of float32"
        self._require(is_number and LEAST <= value <= MOST, key, value, expected)
        return float(value)

    def reals(self, key: str) -> tuple[float, ...]:
        """A list of positive, finite values."""
        values = self._get(key, None)
        self._require(isinstance(values, list), key, values, "a list of positive values")
        return tuple(Fields(self.where, {key: value}).real(key) for value in values)

    def count(self, key: str, default: int) -> int:
        """An integer of 0 or more."""
        value = self._get(key, default)
        self._require(_is_integer(value) and 0 <= value < 2**31, key, value, "an integer >= 0")
        return value

    def counts(self, key: str) -> tuple[int, ...]:
        """A list of integers of 0 or more."""
        values = self._get(key, None)
        holds = isinstance(values, list) and all(_is_integer(x) and 0 <= x < 2**31 for x in values)
        self._require(holds, key, values, "a list of integers >= 0")
        return tuple(values)

    def below(self, prefix: str) -> "Fields":
        """The entries whose keys begin with `prefix` and a dot, by the rest of the key."""
        start = f"{prefix}."
        entries = {k.removeprefix(start): v for k, v in self.values.items() if k.startswith(start)}
        return Fields(self.where, entries, start)

    def renamed(self, names: Mapping[str, str]) -> "Fields":
        """The entries, some of them also under another name, unless it is taken."""
        more = {new: self.values[old] for old, new in names.items() if old in self.values}
        return Fields(self.where, {**more, **self.values})

    def flag(self, key: str, default: bool) -> bool:
        """A boolean."""
        value = self._get(key, default)
        self._require(isinstance(value, bool), key, value, "a boolean")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A string."""
        value = self._get(key, default)
        self._require(isinstance(value, str), key, value, "a string")
        return value

    def texts(self, key: str) -> list[str]:
        """A list of strings."""
        value = self._get(key, None)
        holds = isinstance(value, list) and all(isinstance(item, str) for item in value)
        self._require(holds, key, value, "a list of strings")
        return value

    def table(self, key: str) -> "Fields":
        """An object; empty if it is missing."""
        value = self._get(key, {})
        self._require(isinstance(value, dict), key, value, "an object")
        return Fields(self.where, value)

    def ids(self, key: str) -> tuple[int, ...]:
        """Token ids, one or a list of them; empty if they are missing."""
        value = self._get(key, [])
        ids = value if isinstance(value, list) else [value]
        holds = all(_is_integer(id) and 0 <= id < 2**31 for id in ids)
        self._require(holds, key, value, "token ids")
        return tuple(ids)

    def id(self, key: str) -> int | None:
        """One token id; None if it is missing."""
        ids = self.ids(key)
        self._require(len(ids) <= 1, key, self.values.get(key), "one token id")
        return ids[0] if ids else None

    def _get(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        if value is None:
            value = default
        if value is None:
            raise self.refuse(f"'{self.prefix}{key}' is missing")
        return value

    def _require(self, holds: bool, key: str, value: Any, expected: str) -> None:
        if not holds:
            raise self.refuse(f"'{self.prefix}{key}' is {quoted(value)}; expects {expected}")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
