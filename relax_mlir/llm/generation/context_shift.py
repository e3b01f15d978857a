"""What an answer goes on from in a full context: the first tokens, and the last of the others.

    tokens      a b c d e f g h i      in a context of 8, of which 2 are retained
    after       a b f g h i            half of the others are dropped, the older ones

What is left is computed again, as a text of its own: nothing of what was dropped has a part in the
answer any more, whatever positions, windows, states and caches a model has.

Source: llama.cpp, `--context-shift` and `--keep`; Xiao et al. 2023 (attention sinks), why the first
tokens are retained.
"""

from relax_mlir.errors import UsageError

KEEP = 4
"""First tokens that command lines keep."""


def check_keep(keep: int, capacity: int, has_pictures: bool) -> None:
    """Raises UsageError unless something is left of `capacity` tokens, and all of it are tokens."""
    if not 0 <= keep < capacity:
        raise UsageError(f"keep is {keep}; expects 0 to {capacity - 1} tokens of the context")
    if has_pictures:
        raise UsageError("a prompt on images ends with its context; expects no tokens to keep")


def dropped(length: int, keep: int) -> int:
    """How many of so many tokens are dropped after the first `keep`: one at least."""
    assert length - keep > 1  # one more than the context, which `check_keep` compares
    return (length - keep) // 2
