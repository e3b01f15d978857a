"""What a recording says: its text, in parts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Segment:
    """A part of a recording, in seconds, and its text; its tokens, if they are known."""

    start: float
    end: float
    text: str
    tokens: tuple[int, ...] = ()


@dataclass(frozen=True)
class Transcript:
    """All parts of a recording of so many seconds; the language is None if the model has one."""

    segments: tuple[Segment, ...]
    language: str | None
    seconds: float

    @property
    def text(self) -> str:
        """The text of all parts."""
        return "".join(segment.text for segment in self.segments).strip()
