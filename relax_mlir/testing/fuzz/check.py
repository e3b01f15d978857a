"""Compiles programs, many as one module, and holds each call against what it means.

Arrays lie before or behind pages that no one may touch, so that an access beyond them ends the
process: see `pool.py`.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

import relax_mlir
from relax_mlir.analysis.functions import NUM_INPUTS
from relax_mlir.bindings import ir
from relax_mlir.codegen import translating
from relax_mlir.diagnostics import compile_error, parse_module
from relax_mlir.dialects import make_context
from relax_mlir.errors import CompileError, ExecutionError
from relax_mlir.interpreter.elements import stored_dtype
from relax_mlir.interpreter.module import Interpreted
from relax_mlir.passes import PassFailure, Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.runtime.calls import sequence_of
from relax_mlir.target import Target
from relax_mlir.transforms.check_memory_plan import CheckMemoryPlan

from ..doubt import doubtful
from ..guards import check_guards, guarded
from ..ptx import PtxKernels
from ..recall import Memory, recalled
from .callees import noted
from .expected import Meaning, Sample
from .orders import ON_SCHEDULES, with_more
from .program import Program

PARAMS = "_params"
_TO_HOST = r",relax-to-host(\{[^}]*\})?"
_LEFT_OUT = "|".join(
    (
        r"relax-schedule(\{[^}]*\})?,",
        re.escape(f"{ON_SCHEDULES},"),
        _TO_HOST,
        ",relax-check-memory-plan",
    )
)
PASSES, DEVICE, CODE = "passes", "device", "code"
"""How far programs are taken: to planned memory, or to kernels of a device, which are interpreted,
or to machine code."""


@dataclass(frozen=True)
class Setting:
    """How programs are compiled and called."""

    level: int
    target: str = "native"
    threads: int = 1
    stage: str = CODE
    doubts: int | None = None
    """Which claims the prover does not know; with None, it knows what it can."""
    libraries: tuple[str, ...] = ()
    order: int | None = None
    """Which other passes run, and where; with None, none."""
    optimises: bool = True
    """Whether LLVM does, which takes most of the time."""

    def __str__(self) -> str:
        library = f" --library={','.join(self.libraries)}" if self.libraries else ""
        order = "" if self.order is None else f", order {self.order}"
        if self.stage == DEVICE:
            return f"threads of -O{self.level} --target={self.target}"
        if self.stage == PASSES:
            doubts = "" if self.doubts is None else f", doubts {self.doubts}"
            target = "" if self.target == "native" else f" --target={self.target}"
            return f"passes of -O{self.level}{target}{library}{doubts}{order}"
        llvm = "" if self.optimises else ", translated"
        return (
            f"-O{self.level} --target={self.target}{library}, threads={self.threads}{order}{llvm}"
        )

    @property
    def is_of_device(self) -> bool:
        """Whether machine code launches kernels on a device."""
        return self.stage == CODE and Target.parse(self.target).device is not None

    @property
    def steps(self) -> str:
        """The pipeline, as text."""
        steps = pipeline(self.target, self.level, libraries=self.libraries)
        return steps if self.order is None else with_more(steps, self.order)

    def compile(self, text: str) -> Any:
        """What has the public functions of a module; raises CompileError."""
        if self.stage == PASSES:
            return self._planned(text)
        if self.stage == DEVICE:
            return self._launched(text)
        with nullcontext() if self.optimises else translating():
            if self.order is not None:
                return relax_mlir.compile(text, target=self.target, passes=self.steps)
            return relax_mlir.compile(
                text, target=self.target, opt_level=self.level, libraries=self.libraries
            )

    def _planned(self, text: str) -> Any:
        """The module with kernels as tensor programs, and memory that is planned and replayed."""
        passes = Pipeline.parse(re.sub(_LEFT_OUT, "", self.steps))
        with make_context(), ir.Location.unknown():
            module = parse_module(text)
            with nullcontext() if self.doubts is None else doubtful(self.doubts):
                passes.run(module)
            return _replayed(module)

    def _launched(self, text: str) -> Any:
        """The module with kernels as launches of a device; those of NVIDIA's are PTX."""
        passes = Pipeline.parse(re.sub(_TO_HOST, "", self.steps))
        device = Target.parse(self.target).device
        assert device is not None
        with make_context(), ir.Location.unknown():
            module = parse_module(text)
            passes.run(module)
            if device.api == "cuda":
                return Interpreted(module, launch=PtxKernels(module, device).launch)
            return relax_mlir.interpret(module)


def _replayed(module: ir.Module) -> Any:
    try:
        CheckMemoryPlan().run(module.operation)
    except PassFailure as failure:
        error = compile_error([failure.diagnostic])
        raise AssertionError(f"the plan is wrong: {error}") from None
    return relax_mlir.interpret(module)


@dataclass(frozen=True)
class Failure:
    """A program that is not what it means: under which setting, and how."""

    seed: int
    setting: str
    text: str

    @property
    def kind(self) -> str:
        """What shrinking has to keep: the first word, and an exception's own."""
        return f"{self.text.split(':', 1)[0]} {self.text.strip().splitlines()[-1][:12]}"


def meanings(programs: Sequence[Program], sizes: int) -> dict[str, Meaning]:
    """Interprets each program."""
    module = relax_mlir.interpret("\n".join(each.fine or each.text for each in programs))
    return {program.name: Meaning(module[program.name], program, sizes) for program in programs}


def refusal(program: Program, setting: Setting) -> str | None:
    """What the compiler refuses a program with."""
    try:
        setting.compile(program.text)
    except CompileError as error:
        return str(error)
    return None


def compare(
    programs: Sequence[Program], known: Mapping[str, Meaning], setting: Setting, memory: Memory
) -> list[Failure]:
    """Compiles programs that are accepted, and compares each of their calls.

    `memory` is of calls of tensor programs, at other levels.
    """
    text = "\n".join(program.text for program in programs)
    module = setting.compile(text)
    failures = []
    with recalled(memory):
        for program in programs:
            call = _Call(module, known[program.name], setting)
            for number, sample in enumerate(known[program.name].samples):
                if program.fine is not None and sample.refused is not None:
                    continue  # coarser annotations may allow more
                found = call.difference(sample, at_end=(program.seed + number) % 4 != 0)
                if found is not None:
                    failures.append(Failure(program.seed, str(setting), found))
                    break
    return failures


class _Call:
    """A compiled function that is called as the program was written."""

    def __init__(self, module: Any, meaning: Meaning, setting: Setting) -> None:
        name = meaning.function.name
        self.function, self._threads = module[name], setting.threads
        self._is_code = setting.stage == CODE
        self.results = self.function.results
        self._meaning = meaning
        self._maker = module[name + PARAMS] if name + PARAMS in module.functions else None
        attributes = meaning.function.operation.attributes
        self._count = attributes[NUM_INPUTS].value if self._maker else None

    def difference(self, sample: Sample, at_end: bool) -> str | None:
        """How a call differs from what it means, or None."""
        try:
            arrays = self._parameters([_kept(x, at_end) for x in sample.arrays], at_end)
            before = [x.copy() if isinstance(x, np.ndarray) else x for x in arrays]
            with noted(self._is_code) as notes:
                found = self._run(arrays, sample, at_end)
        except ExecutionError as error:
            if sample.refused is None:
                return f"refused: {error} for {sample.where}"
            if self._is_code:
                sample.told.append(str(error))
                if sample.told[0] != str(error):
                    return f"refused otherwise: {error}, but before: {sample.told[0]}"
            return None
        if sample.refused is not None:
            return f"not refused: {sample.refused} for {sample.where}"
        for index, (got, want) in enumerate(zip(found, sample.expected, strict=True)):
            told = want.difference(got, self._meaning.coarsest, self._meaning.ulps)
            if told is not None:
                want = self._meaning.surely(sample, index)
                told = want.difference(got, self._meaning.coarsest, self._meaning.ulps)
            if told is not None:
                return f"differs: result {index} {told} for {sample.where}"
        if notes.lines != list(sample.lines):
            return f"effects: {notes.lines} are not {sample.lines} for {sample.where}"
        return self._touched(arrays, before, sample)

    def _parameters(self, arrays: list[Any], at_end: bool) -> list[Any]:
        """The arguments, with weights laid out if the level wants them so."""
        if self._maker is None:
            return arrays
        made = self._maker(*arrays[self._count :])
        made = made if isinstance(made, tuple) else (made,)
        return arrays[: self._count] + [_kept(np.asarray(x), at_end) for x in made]

    def _run(self, arrays: list[Any], sample: Sample, at_end: bool) -> list[np.ndarray]:
        """Calls into buffers of our own."""
        buffers = [
            None
            if result.alias is not None or not sample.expected
            else _kept(_garbage(want.value), at_end)
            for result, want in zip(self.results, sample.expected or self.results, strict=True)
        ]
        values = self.function.bind(*arrays, results=buffers).run(self._threads)
        for buffer in buffers:
            if buffer is not None:
                check_guards(buffer)
        return [
            np.asarray(value).view(stored_dtype(result.dtype))
            for value, result in zip(
                sequence_of(values, len(self.results)), self.results, strict=True
            )
        ]

    def _touched(self, arrays: list[Any], before: list[Any], sample: Sample) -> str | None:
        for index, (array, old) in enumerate(zip(arrays, before, strict=True)):
            if not isinstance(array, np.ndarray):
                continue
            check_guards(array)
            inout = self.function.arguments[index].inout
            if not inout and array.tobytes() != old.tobytes():
                return f"writes: argument {index} is changed for {sample.where}"
        return None


def _kept(array: Any, at_end: bool) -> Any:
    """An array between forbidden pages."""
    if not isinstance(array, np.ndarray):
        return array
    return guarded(array, at_end)


def _garbage(like: np.ndarray) -> np.ndarray:
    return np.full(like.nbytes, 0x5A, np.uint8).view(like.dtype).reshape(like.shape)
