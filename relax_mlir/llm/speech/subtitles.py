"""Subtitles of a transcript, as SubRip files have them."""

from collections.abc import Iterable

from relax_mlir.llm.speech.transcriber import Segment


def srt(segments: Iterable[Segment]) -> str:
    """The text of an `.srt` file."""
    blocks = [
        f"{index}\n{_time(segment.start)} --> {_time(segment.end)}\n{segment.text.strip()}\n"
        for index, segment in enumerate(segments, 1)
    ]
    return "\n".join(blocks)


def _time(seconds: float) -> str:
    milliseconds = round(1000 * seconds)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02},{rest % 1000:03}"
