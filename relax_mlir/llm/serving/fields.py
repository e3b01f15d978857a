"""Typed access to the fields of a request's body. Null is as good as absent, as for OpenAI."""

from collections.abc import Callable, Collection, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from starlette.requests import Request

from relax_mlir.llm.serving import json_text
from relax_mlir.llm.serving.errors import ApiError, refused

SHOWN = 60
"""Characters of a wrong value that a message repeats."""


class Body:
    """An object of the body; `path` leads to it from the outermost, for messages."""

    def __init__(self, values: Any, path: str = "") -> None:
        if not isinstance(values, dict):
            raise refused(f"{path or 'the body'} is {shown(values)}; expects an object", path)
        self.values: Mapping[str, Any] = values
        self.path = path

    def only(self, known: Collection[str]) -> None:
        """Raises ApiError for a field that is not one of `known`."""
        for name, value in self.values.items():
            if name not in known and value is not None:
                raise refused(
                    f"unknown field '{shorten(self._path(name))}'; known are {', '.join(known)}",
                    shorten(self._path(name)),
                    "unknown_field",
                )

    def get(self, name: str) -> Any:
        """The value of a field, of whatever type; None if it is absent."""
        return self.values.get(name)

    def refuse(self, name: str, expected: str) -> ApiError:
        """The error that a field is wrong."""
        path = self._path(name)
        value = self.get(name)
        what = f"'{path}' is missing" if value is None else f"'{path}' is {shown(value)}"
        return refused(f"{what}; expects {expected}", path)

    def text(self, name: str, default: str | None = None) -> str:
        """A string; without a `default`, it must be there."""
        value = default if self.get(name) is None else self.get(name)
        if not isinstance(value, str):
            raise self.refuse(name, "a string")
        return value

    def choice(self, name: str, options: Collection[str], default: str) -> str:
        """One of some strings."""
        if (value := self.text(name, default)) not in options:
            raise self.refuse(name, f"one of {', '.join(options)}")
        return value

    def flag(self, name: str) -> bool:
        """A boolean, false by default."""
        value = self.get(name)
        if not isinstance(value, bool | None):
            raise self.refuse(name, "true or false")
        return bool(value)

    def integer(self, name: str, least: int, most: int) -> int | None:
        """An integer within bounds, which may be written as a float without fraction."""
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.refuse(name, f"an integer from {least} to {most}")
        return value

    def real(self, name: str, least: float, most: float) -> float | None:
        """A real value within bounds."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self.refuse(name, f"a value from {least:g} to {most:g}")
        if not least <= value <= most:
            raise self.refuse(name, f"a value from {least:g} to {most:g}")
        return float(value)

    def texts(self, name: str, most: int) -> list[str]:
        """A string or an array of up to `most`, none by default."""
        value = self.get(name)
        texts = [value] if isinstance(value, str) else [] if value is None else value
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise self.refuse(name, "a string or an array of strings")
        if len(texts) > most:
            raise refused(
                f"'{self._path(name)}' has {len(texts)} strings; expects {most} at most",
                self._path(name),
            )
        return texts

    def table(self, name: str) -> "Body | None":
        """An object, if there is one."""
        value = self.get(name)
        return None if value is None else Body(value, self._path(name))

    def tables(self, name: str) -> "Iterator[Body]":
        """The objects of an array; none if it is absent."""
        value = self.get(name)
        if not isinstance(value, list | None):
            raise self.refuse(name, "an array")
        for index, item in enumerate(value or []):
            yield Body(item, f"{self._path(name)}[{index}]")

    def _path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def check_type(request: Request, expected: str) -> None:
    """Raises ApiError for a body of another content type."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != expected:
        raise ApiError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            f"the content type is '{shorten(kind)}'; expects {expected}",
        )


def parsed(text: bytes) -> Body:
    """The fields of a body; raises ApiError if it is no JSON."""
    try:
        return Body(json_text.load(text))
    except ValueError as error:
        raise refused(f"the body is not JSON: {error}", code="invalid_json") from None


async def read_bytes(request: Request, most: int, add: Callable[[int], None]) -> bytes:
    """The body of a request, whose parts' sizes are given to `add`.

    Raises ApiError as soon as it is larger than `most`.
    """
    chunks: list[bytes] = []
    total = 0
    async for chunk in request.stream():
        total += len(chunk)
        check_size(total, most)
        add(len(chunk))
        chunks.append(chunk)
    return b"".join(chunks)


def check_size(total: int, most: int) -> None:
    """Raises ApiError if a body of `total` bytes is too large."""
    if total > most:
        raise ApiError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the body is larger than {most} bytes, the limit of this server",
            code="body_too_large",
        )


def shown(value: Any) -> str:
    """A value in a message: short ones themselves, of others the kind."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else f"an array of {len(value)}"
    return shorten(json_text.dump(value).decode())


def shorten(text: str) -> str:
    """The first characters of a text, on one line."""
    line = "".join(c if c.isprintable() else "?" for c in text[: SHOWN + 1])
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}..."
