"""Ends streamed text before the first occurrence of a stop text."""

from collections.abc import Sequence

from relax_mlir.errors import UsageError


class StopTexts:
    """Takes the pieces of a text and returns the part that precedes any of `texts`.

    `reached` is true once one of them has occurred; the rest of the text is dropped. Raises
    UsageError if one is empty.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        if "" in texts:
            raise UsageError("a stop text is empty; expects one character or more")
        self.reached = False
        self._texts = tuple(texts)
        self._pending = ""

    def push(self, piece: str) -> str:
        """The text that this piece completes; the possible start of a stop text is withheld."""
        if self.reached:
            return ""
        text = self._pending + piece
        starts = [start for stop in self._texts if (start := text.find(stop)) >= 0]
        self.reached = bool(starts)
        certain = min(starts) if starts else len(text) - self._start_of_stop(text)
        self._pending = text[certain:]
        return text[:certain]

    def flush(self) -> str:
        """The withheld text, if the text ends here."""
        pending, self._pending = self._pending, ""
        return "" if self.reached else pending

    def _start_of_stop(self, text: str) -> int:
        """The length of the longest suffix that may begin a stop text."""
        longest = min(max(map(len, self._texts), default=1) - 1, len(text))
        for count in range(longest, 0, -1):
            if any(stop.startswith(text[-count:]) for stop in self._texts):
                return count
        return 0
