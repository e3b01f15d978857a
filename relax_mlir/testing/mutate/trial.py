"""One damaged module, and what the compiler makes of it."""

import io
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from relax_mlir import dialects
from relax_mlir.bindings import ir
from relax_mlir.compiler import compile_to_parts
from relax_mlir.diagnostics import collecting, parse_module
from relax_mlir.errors import CompileError, UsageError
from relax_mlir.passes import Pipeline, own_passes
from relax_mlir.pipelines import OPT_LEVELS, STEPS, pipeline
from relax_mlir.source import Source
from relax_mlir.target import Target
from relax_mlir.testing.mutate import structure, words

TARGET = "x86-64-v3"
COMPILED = 0.04
"""How many of the modules are compiled to machine code, which takes a second each."""
_INVALID = "found by the verifier after"


@dataclass(frozen=True)
class Input:
    """What the compiler is given: text or bytecode, and passes; None: all of the compiler."""

    data: str | bytes
    passes: tuple[str, ...] | None
    opt_level: int = 2

    @property
    def pipeline(self) -> str:
        """The passes as `relax-opt` takes them."""
        return f"builtin.module({','.join(self.passes or ())})"

    def command(self, file: Path) -> str:
        """The command that shows what happens."""
        if self.passes is None:
            return f"relax-compile --no-cache --target={TARGET} -O{self.opt_level} {file}"
        return f"relax-opt --pass-pipeline='{self.pipeline}' {file}"


@dataclass(frozen=True)
class Failure:
    """What the compiler should not have done; `key` is the same for what has one cause."""

    kind: str
    key: str
    details: str = ""


def make_input(modules: Sequence[str], random: Random) -> Input:
    """Draws a module, brings it some way through a pipeline, damages it and chooses passes."""
    text, level = random.choice(modules), random.choice(OPT_LEVELS)
    steps = _default(level)
    start = random.choice((0, random.randrange(len(steps))))
    with dialects.make_context(upstream=None), ir.Location.unknown():
        module = _advanced(text, steps[:start])
        data = _damaged(text if module is None else module, random)
    if isinstance(data, str) and start == 0 and random.random() < COMPILED:
        return Input(data, None, level)
    choice = random.random()
    if choice < 0.5:
        return Input(data, steps[start:])
    if choice < 0.6:
        return Input(data, steps)
    if choice < 0.7:
        return Input(data, ())
    return Input(data, tuple(random.choices(single_passes(), k=random.choice((1, 1, 2, 3)))))


NEEDS_OPTIONS = {
    "bind-symbols": "relax-bind-symbols{{symbols=n=4,m=2*k}}",
    "fuse-ops-by-pattern": "relax-fuse-ops-by-pattern{{match='own.sum = add(exp(%x), %y)'}}",
}
"""Passes that no pipeline has, and that do not run without options."""


def _default(level: int) -> tuple[str, ...]:
    """The passes of a default pipeline."""
    return tuple(map(str, Pipeline.parse(pipeline(TARGET, level)).root.elements))


def single_passes() -> list[str]:
    """Passes to run alone, those with options as pipelines have them."""
    known = {step.name: step.text for step in STEPS} | NEEDS_OPTIONS
    options = {
        "target": TARGET,
        "devices": "",
        "fuse": "",
        "packs": "",
        "plan": "",
        "reuse": "",
        "quantize": "q4_32",
        "libraries": "openblas",
    }
    names = [name.removeprefix("relax-") for name in own_passes()]
    return [known.get(name, f"relax-{name}").format(**options) for name in names]


def _advanced(text: str, passes: Sequence[str]) -> ir.Module | None:
    """The module after some passes; None if one refuses it."""
    module = parse_module(text)
    try:
        Pipeline.parse(f"builtin.module({','.join(passes)})").run(module)
    except CompileError:
        return None
    return module


def _damaged(module: str | ir.Module, random: Random) -> str | bytes:
    choice = random.random()
    if isinstance(module, str):
        if choice < 0.5:
            return words.damage(module, random)
        module = parse_module(module)
    if choice < 0.1:
        buffer = io.BytesIO()
        module.operation.write_bytecode(buffer)
        return words.flip_bits(buffer.getvalue(), random)
    if choice < 0.45:
        generic = random.random() < 0.5
        return words.damage(module.operation.get_asm(print_generic_op_form=generic), random)
    structure.damage(module, random)
    return module.operation.get_asm(print_generic_op_form=True, assume_verified=True)


def attempt(given: Input, reached: Callable[[str], object] = lambda _: None) -> Failure | None:
    """Has the compiler take a module; what it did wrong, or None.

    `reached` is called with the name of each pass that has run.
    """
    try:
        if given.passes is None:
            assert isinstance(given.data, str)
            target = Target.parse(TARGET)
            compile_to_parts(Source(given.data, "text"), target, given.opt_level)
        else:
            _optimise(given, reached)
    except CompileError as error:
        return _refused(error, given)
    except UsageError as error:
        return Failure("usage", str(error))
    except Exception:
        return _traceback()
    return None


def _optimise(given: Input, reached: Callable[[str], object]) -> None:
    """What `relax-opt` does."""
    context = dialects.make_context(upstream=None)
    severities = ("error", "warning", "remark")
    with context, ir.Location.unknown(), collecting(context, severities):
        module = parse_module(given.data)
        reached("parse")

        def after_each(name: str, _: ir.Operation) -> None:
            reached(name)

        Pipeline.parse(given.pipeline).run(module, verify=True, after_each=after_each)
        module.operation.get_asm(assume_verified=True)


def _refused(error: CompileError, given: Input) -> Failure | None:
    for diagnostic in error.diagnostics:
        for note in (diagnostic, *diagnostic.notes):
            if _INVALID in note.message:
                first = error.diagnostics[0].message.splitlines()[0]
                key = f"{note.message}: {re.sub(r'[0-9]+', '0', first)}"
                return Failure("invalid IR", key[:160], str(error))
    errors = [found for found in error.diagnostics if found.severity == "error"]
    placed = bool(errors) and bool(errors[0].where)
    if not placed and isinstance(given.data, str) and "loc(" not in given.data:
        return Failure("no location", re.sub(r"[0-9]+|'[^']*'", "_", str(error))[:120], str(error))
    return None


def _traceback() -> Failure:
    kind, _, trace = sys.exc_info()
    frames = [f for f in traceback.extract_tb(trace) if "relax_mlir" in f.filename]
    frames = [f for f in frames if "/testing/mutate/" not in f.filename]
    last = frames[-1] if frames else None
    where = f"{Path(last.filename).name}:{last.name}" if last is not None else "?"
    key = f"{kind.__name__ if kind else '?'} in {where}"
    return Failure("traceback", key, traceback.format_exc(limit=-12))
