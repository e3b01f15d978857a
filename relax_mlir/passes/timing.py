"""Wall-clock time by pass, nested like the pipeline."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Span:
    """Seconds spent under a name, and the nested spans."""

    name: str
    seconds: float = 0.0
    children: dict[object, "Span"] = field(default_factory=dict)


class Timing:
    """Collects spans; one that is entered again under the same key accumulates."""

    def __init__(self) -> None:
        self.root = Span("Total")
        self._stack = [self.root]
        self._start = time.perf_counter()

    @contextmanager
    def span(self, name: str, key: object = None) -> Iterator[None]:
        """Times the `with` block; `key` distinguishes spans of one name."""
        children = self._stack[-1].children
        span = children.setdefault(name if key is None else key, Span(name))
        self._stack.append(span)
        start = time.perf_counter()
        try:
            yield
        finally:
            span.seconds += time.perf_counter() - start
            self._stack.pop()

    def report(self) -> str:
        """A table of seconds and shares, in the order of first use; `Rest` is untimed work."""
        total = time.perf_counter() - self._start
        measured = sum(child.seconds for child in self.root.children.values())
        bar = "===" + "-" * 73 + "==="
        lines = [bar, f"{'... Execution time report ...':^79}".rstrip(), bar]
        lines += [f"  Total Execution Time: {total:.4f} seconds", ""]
        lines += ["  ----Wall Time----  ----Name----"]

        def row(name: str, seconds: float, depth: int) -> None:
            share = 100 * seconds / total if total else 0.0
            lines.append(f"  {seconds:8.4f} ({share:5.1f}%)  {'  ' * depth}{name}")

        def rows(span: Span, depth: int) -> None:
            for child in span.children.values():
                row(child.name, child.seconds, depth)
                rows(child, depth + 1)

        rows(self.root, 0)
        row("Rest", total - measured, 0)
        row("Total", total, 0)
        return "\n".join(lines)
