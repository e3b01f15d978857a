"""Reads modules of StableHLO: text, MLIR's bytecode, portable artifacts."""

import os
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from relax_mlir.bindings import ir, stablehlo
from relax_mlir.child_process import run_in_child
from relax_mlir.diagnostics import Diagnostic, collecting, compile_error, parse_module
from relax_mlir.errors import CompileError, UsageError

MAGIC = b"ML\xefR"
"""What bytecode begins with."""

PRODUCER = b"StableHLO"
"""What the name of the writer of a portable artifact begins with, after MAGIC and a version."""

SECONDS = 120
SUFFIXES = (".mlir", ".mlirbc", ".stablehlo")


def read(source: "ir.Module | str | bytes | os.PathLike") -> tuple[ir.Module, str]:
    """A module and the name of its source, in the current context, which has StableHLO.

    A text of one line that ends as a file name is a path. Raises CompileError, with located
    diagnostics, for what is damaged or of a newer version, UsageError for a file that is not there.
    """
    if isinstance(source, bytes):
        return _parsed(source, "bytes"), "-"
    is_text = isinstance(source, str) and not _is_path(source)
    if is_text:
        return _parsed(source, "-"), "-"  # type: ignore[arg-type]  # a string
    name = os.fspath(source)  # type: ignore[arg-type]  # a path
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read '{name}': {error.strerror}") from None
    return _parsed(data, name), name


def _is_path(source: str) -> bool:
    return "\n" not in source.strip() and source.strip().endswith(SUFFIXES)


def _parsed(data: str | bytes, name: str) -> ir.Module:
    try:
        if isinstance(data, bytes) and not data.startswith(MAGIC):
            try:
                data = data.decode()
            except UnicodeDecodeError as error:
                message = f"is neither bytecode nor UTF-8 text: {error.reason}"
                raise compile_error([Diagnostic("error", message, name)]) from None
        if isinstance(data, bytes) and PRODUCER in data[: len(MAGIC) + 32]:
            data = _plain(data)
        return parse_module(data)
    except CompileError as error:
        located = [
            replace(each, file=name) if each.file in ("", "-") else each
            for each in error.diagnostics
        ]
        raise compile_error(located) if located else error from None


def _plain(artifact: bytes) -> bytes:
    """MLIR's bytecode of a portable artifact, which is read in a child process."""
    with ir.Context() as context:
        stablehlo.load(context)

        def convert(result: BinaryIO) -> int:
            with collecting(context, ["error"]) as errors:
                try:
                    result.write(stablehlo.to_bytecode(artifact))
                except ValueError as error:
                    text = errors[0].message if errors else str(error)
                    result.write(text.encode())
                    return 1
            return 0

        ended = run_in_child(convert, SECONDS)
    if ended.signal is not None:
        reason = f"StableHLO's reader of it ends with {ended.signal.name}"
    elif ended.status == 0:
        return ended.data
    else:
        reason = ended.data.decode(errors="replace") or "StableHLO's reader of it fails"
    versions = f"versions {stablehlo.OLDEST} to {stablehlo.NEWEST} are supported"
    message = f"the portable artifact is damaged or newer: {reason}; {versions}"
    raise compile_error([Diagnostic("error", message, "-")])
