"""Errors that a user of the compiler can cause; everything else is a bug and shows a traceback.

    RelaxError
    ├── UsageError           wrong flag, option or file: command-line tools exit with 2
    │   └── PipelineError    the text of a pass pipeline
    ├── CompileError         the program cannot be compiled: tools exit with 1
    ├── ExecutionError       a compiled function refuses its arguments or fails
    │   └── OutOfMemoryError a MemoryError too
    └── ModelError           a model file, tokenizer or configuration that cannot be used

Messages are lower case, have no full stop, and name the value and what would be accepted.
"""


class RelaxError(Exception):
    """Base of all errors whose message is written for the user."""


class UsageError(RelaxError):
    """A command line, option or file name is wrong; nothing was compiled or run."""


class PipelineError(UsageError):
    """The text of a pass pipeline names an unknown pass or option, or does not parse."""


class CompileError(RelaxError):
    """A module is invalid, or not supported by the compiler.

    `diagnostics` are the located `relax_mlir.diagnostics.Diagnostic`s of the message, if any.
    """

    def __init__(self, message: str, diagnostics: tuple = ()) -> None:
        super().__init__(message)
        self.diagnostics = diagnostics


class ExecutionError(RelaxError):
    """A compiled function refused its arguments or failed while it ran."""


class OutOfMemoryError(ExecutionError, MemoryError):
    """A compiled function ran out of memory; the message says how many bytes it needs."""


class ModelError(RelaxError):
    """A model, its tokenizer or its configuration is damaged, missing or not supported."""
