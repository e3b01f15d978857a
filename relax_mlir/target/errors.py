"""What is wrong with a target that was asked for."""

from relax_mlir.errors import UsageError


class TargetError(UsageError):
    """A target that is not known or cannot be, or a machine that code cannot be made for."""
