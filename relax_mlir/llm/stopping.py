"""Ending a text where one of some given texts begins, while it comes piece by piece."""

from collections.abc import Sequence

from relax_mlir.errors import UsageError


class StopTexts:
    """Takes the pieces of a text and gives what is certain to lie before any of `texts`.

    `found` is true from where one of them has come; nothing is given from then on. Raises
    UsageError if one is empty.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        if "" in texts:
            raise UsageError("a stop text is empty; expects one character or more")
        self.found = False
        self._texts = tuple(texts)
        self._held = ""

    def push(self, piece: str) -> str:
        """The text that is certain with this piece; the start of a stop text is held back."""
        if self.found:
            return ""
        text = self._held + piece
        places = [place for stop in self._texts if (place := text.find(stop)) >= 0]
        self.found = bool(places)
        certain = min(places) if places else len(text) - self._start_of_stop(text)
        self._held = text[certain:]
        return text[:certain]

    def flush(self) -> str:
        """What was held back, if the text ends here."""
        held, self._held = self._held, ""
        return "" if self.found else held

    def _start_of_stop(self, text: str) -> int:
        """How many of the last characters may begin a stop text."""
        longest = min(max(map(len, self._texts), default=1) - 1, len(text))
        for count in range(longest, 0, -1):
            if any(stop.startswith(text[-count:]) for stop in self._texts):
                return count
        return 0
