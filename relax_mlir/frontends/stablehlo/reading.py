"""Reads modules of StableHLO: text, MLIR's bytecode, portable artifacts."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from relax_mlir.bindings import ir, stablehlo
from relax_mlir.child_process import run_in_child
from relax_mlir.diagnostics import Diagnostic, collecting, compile_error, parse_module
from relax_mlir.errors import CompileError, UsageError

MAGIC = b"ML\xefR"
"""What bytecode begins with."""

PRODUCER = re.compile(rb"StableHLO_v(\d+)\.(\d+)\.(\d+)")
"""The name of the writer of a portable artifact, after MAGIC: the version."""

SUPPORTED = f"versions {stablehlo.OLDEST} to {stablehlo.NEWEST} are supported"
SECONDS = 120
SUFFIXES = (".mlir", ".mlirbc", ".stablehlo")


def read(source: "str | bytes | os.PathLike", trusted: bool) -> tuple[ir.Module, str]:
    """A module and the name of its source, in the current context, which has StableHLO.

    A text of one line that ends as a file name is a path. Bytecode that is not trusted is read in a
    child process. Raises CompileError, with located
    diagnostics, for what is damaged or of a newer version, UsageError for a file that is not there.
    """
    if isinstance(source, bytes) or (isinstance(source, str) and not _is_path(source)):
        return _parsed(source, "-", trusted), "-"
    name = os.fspath(source)
    try:
        data = Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read '{name}': {error.strerror}") from None
    return _parsed(data, name, trusted), name


def _is_path(source: str) -> bool:
    return "\n" not in source.strip() and source.strip().endswith(SUFFIXES)


def _parsed(data: str | bytes, name: str, trusted: bool) -> ir.Module:
    try:
        if isinstance(data, bytes) and not data.startswith(MAGIC):
            try:
                data = data.decode()
            except UnicodeDecodeError as error:
                message = f"is neither bytecode nor UTF-8 text: {error.reason}"
                raise compile_error([Diagnostic("error", message, name)]) from None
        version = PRODUCER.search(data, 0, 64) if isinstance(data, bytes) else None
        if version is not None and isinstance(data, bytes):
            _check(tuple(map(int, version.groups())))
            data = stablehlo.to_bytecode(data) if trusted else _plain(data)
        is_safe = trusted and isinstance(data, bytes)
        return ir.Module.parse(data) if is_safe else parse_module(data)
    except CompileError as error:
        located = [
            replace(each, file=name) if each.file in ("", "-") else each
            for each in error.diagnostics
        ]
        raise compile_error(located) if located else error from None


def _check(version: tuple[int, ...]) -> None:
    """Raises CompileError for a portable artifact of a newer version."""
    if version > tuple(map(int, stablehlo.NEWEST.split("."))):
        message = f"the portable artifact is of version {'.'.join(map(str, version))}; {SUPPORTED}"
        raise compile_error([Diagnostic("error", message, "-")])


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
    message = f"the portable artifact is damaged: {reason}; {SUPPORTED}"
    raise compile_error([Diagnostic("error", message, "-")])
