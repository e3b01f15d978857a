"""Subtitles of the parts of a recording, as files of SubRip and WebVTT have them."""

from collections.abc import Iterable

from relax_mlir.llm.speech.transcript import Segment


def srt(segments: Iterable[Segment]) -> str:
    """The text of an `.srt` file."""
    return _blocks(segments, ",")


def vtt(segments: Iterable[Segment]) -> str:
    """The text of a `.vtt` file. Source: W3C WebVTT."""
    return f"WEBVTT\n\n{_blocks(segments, '.')}"


def _blocks(segments: Iterable[Segment], point: str) -> str:
    """The parts, with `point` in front of milliseconds."""
    return "".join(
        f"{index}\n{_time(part.start, point)} --> {_time(part.end, point)}\n{part.text.strip()}\n\n"
        for index, part in enumerate(segments, 1)
    )


def _time(seconds: float, point: str) -> str:
    milliseconds = round(1000 * seconds)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{point}{rest % 1000:03}"
