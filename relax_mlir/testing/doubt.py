"""A prover that knows less: what is not proved may cost memory or a check, never a result.

with doubtful(seed=3):
    Pipeline.parse(steps).run(module)
"""

from collections.abc import Iterator
from contextlib import contextmanager
from zlib import crc32

from relax_mlir.symbolic import Expr, Facts, prove


@contextmanager
def doubtful(seed: int) -> Iterator[None]:
    """Has a third of the claims unknown that are not true by the canonical form alone."""
    decide = prove._decide

    def doubt(question: str, lhs: Expr, rhs: Expr, facts: Facts) -> prove.Verdict:
        told = f"{seed} {question} {lhs} {rhs}"
        return decide(question, lhs, rhs, facts) if crc32(told.encode()) % 3 else prove.UNKNOWN

    prove._decide = doubt  # type: ignore[assignment]
    try:
        yield
    finally:
        prove._decide = decide
