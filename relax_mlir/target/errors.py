"""The error of an invalid target."""

from relax_mlir.errors import UsageError


class TargetError(UsageError):
    """An unknown or impossible target, or an unsupported machine."""
