"""The results of `llm.py`: one JSON file for each pair of programs, and tables of them."""

import json
import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

NAMES = {"pp": "prompt", "tg": "generation"}


@dataclass(frozen=True)
class Row:
    """One case: seconds of each round, ours and the peer's, for `tokens` tokens.

    `peer_tokens` differ where the peer is slow. `read` is the reading kernel's rate in each round,
    in bytes per second, and `step_bytes` what a step of ours has to read: both of generation only.
    """

    case: str
    tokens: int
    peer_tokens: int
    ours: Sequence[float]
    peer: Sequence[float]
    target: float
    read: Sequence[float] = ()
    step_bytes: float = 0.0

    @property
    def ratio(self) -> tuple[float, float, float]:
        """How many times as fast ours is: lower quartile, median, upper quartile of the rounds."""
        scale = self.tokens / self.peer_tokens
        return quartiles([scale * b / a for a, b in zip(self.ours, self.peer, strict=True)])

    @property
    def rates(self) -> tuple[float, float]:
        """Medians, ours and the peer's, in tokens per second."""
        ours, peer = statistics.median(self.ours), statistics.median(self.peer)
        return self.tokens / ours, self.peer_tokens / peer

    @property
    def share(self) -> float | None:
        """Bytes per second that a step of ours reads, as a share of the reading kernel's."""
        if not self.read:
            return None
        pairs = zip(self.ours, self.read, strict=True)
        return statistics.median(self.step_bytes * self.tokens / a / read for a, read in pairs)


@dataclass(frozen=True)
class Block:
    """One peer compared with ours, for one type of weights and one thread count.

    `note` says whether its answers are right; without rows, why there are none.
    """

    weights: str
    threads: int
    peer: str
    version: str
    note: str
    rows: Sequence[Row] = ()

    def save(self, folder: Path) -> None:
        """Saves the block, and replaces an older one of the same programs.

        A block without rows replaces none: the program may be absent today.
        """
        folder.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"\W+", "-", f"{self.weights} {self.threads} {self.peer}")
        path = folder / f"{name}.json"
        if self.rows or not path.exists():
            path.write_text(json.dumps(asdict(self), indent=1))


def load_blocks(folder: Path) -> list[Block]:
    """The saved blocks."""
    blocks = []
    for path in sorted(folder.glob("*.json")):
        fields = json.loads(path.read_text())
        rows = [Row(**row) for row in fields.pop("rows")]
        blocks.append(Block(**fields, rows=rows))
    return blocks


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile."""
    if len(values) < 2:
        return (values[0],) * 3
    low, middle, high = statistics.quantiles(values, method="inclusive")
    return low, middle, high


def report(blocks: Sequence[Block], weights: Sequence[str], threads: Sequence[int]) -> str:
    """All tables as Markdown, and the summary."""
    lines = []
    for kind in weights:
        for count in threads:
            chosen = [b for b in blocks if (b.weights, b.threads) == (kind, count)]
            if chosen:
                lines += [f"\n**{kind}, {count} thread{'s' * (count > 1)}**\n", *_table(chosen)]
    if any(block.rows for block in blocks):
        lines += ["\n**Summary**\n", *_summary(blocks, weights, threads)]
    return "\n".join(lines)


def _table(blocks: Sequence[Block]) -> Iterator[str]:
    yield "| case | peer | ours | peer's | ratio | quartiles | target | read | share |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for block in blocks:
        if not block.rows:
            yield f"| | {block.peer} {block.version} | {block.note} | | | | | | |"
        for row in block.rows:
            ours, peer = row.rates
            low, middle, high = row.ratio
            read = f"{statistics.median(row.read) / 1e9:.1f} GB/s" if row.read else ""
            share = f"{row.share:.0%}" if row.share is not None else ""
            mark = "" if middle >= row.target else " missed"
            cells = [row.case, f"{block.peer} {block.version}", _rate(ours), _rate(peer)]
            cells += [f"{middle:.2f}", f"{low:.2f} to {high:.2f}", f"{row.target:g}{mark}"]
            yield f"| {' | '.join([*cells, read, share])} |"


def _summary(
    blocks: Sequence[Block], weights: Sequence[str], threads: Sequence[int]
) -> Iterator[str]:
    yield "| weights | threads | case | ours | best peer | ratio | target |"
    yield "|---|---|---|---|---|---|---|"
    for kind in weights:
        for count in threads:
            chosen = [b for b in blocks if (b.weights, b.threads) == (kind, count)]
            for case in dict.fromkeys(row.case for block in chosen for row in block.rows):
                pairs = [(r, b.peer) for b in chosen for r in b.rows if r.case == case]
                row, peer = min(pairs, key=lambda pair: pair[0].ratio[1])
                ours = statistics.median(r.rates[0] for r, _ in pairs)
                cells = [kind, count, case, _rate(ours), f"{peer} {_rate(row.rates[1])}"]
                cells += [f"{row.ratio[1]:.2f}", f"{row.target:g}"]
                yield f"| {' | '.join(map(str, cells))} |"


def _rate(value: float) -> str:
    return f"{value:.0f}" if value >= 200 else f"{value:.1f}"
