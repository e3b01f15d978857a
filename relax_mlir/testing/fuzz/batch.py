"""Checks the programs of some seeds in a row, under several settings; what one worker does."""

import random
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import relax_mlir
from relax_mlir.errors import CompileError, ExecutionError, UsageError
from relax_mlir.target import Target, lacking

from ..recall import Memory
from .check import CODE, DEVICE, PASSES, Failure, Setting, compare, meanings, refusal
from .expected import Meaning
from .program import Program, program

TARGETS = (
    *("native", "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86-64-v3+-fma", "native+-avx512vnni"),
    "x86-64-v2+vector-bytes=8",
)
INTERPRETER = "interpreter"
LIBRARIES = ("openblas", "openblas_conv")
WITH_LIBRARIES = 0.15
"""How often machine code calls them."""
OPTIMISED = 0.25
"""How often LLVM optimises it; what it computes should be the same."""
REORDERED = 0.3
"""How often other passes run too, at one level."""
ON_DEVICES = 0.1
"""How often kernels are those of a device, at one level; and how often machine code calls them."""
INTERPRETED = ("gpu", "gpu", "cuda:sm_80")
"""Devices whose threads are interpreted, as the gpu dialect or as PTX."""
DEVICES = ("gpu", "vulkan", "cuda:sm_75")
_TINY = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.negative"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
DOUBTFUL = 0.25
"""How often passes have a prover that knows less, at one level."""


@dataclass(frozen=True)
class Work:
    """Programs of the seeds from `first` on, at `sizes` sizes each.

    All `levels` are taken to planned memory. Machine code is made at `compiled` of them (all if it
    is negative), for targets and numbers of threads that the seed chooses.
    """

    first: int
    count: int
    sizes: int = 3
    levels: tuple[int, ...] = (0, 1, 2, 3)
    compiled: int = 1
    target: str | None = None

    def settings(self) -> list[Setting]:
        """Those of the batch."""
        chance = random.Random(self.first)
        chosen = [Setting(level, stage=PASSES) for level in self.levels]
        if chosen and chance.random() < DOUBTFUL:
            at = chance.randrange(len(chosen))
            chosen[at] = replace(chosen[at], doubts=self.first)
        if chosen and chance.random() < REORDERED:
            at = chance.randrange(len(chosen))
            chosen[at] = replace(chosen[at], order=self.first)
        count = len(self.levels) if self.compiled < 0 else self.compiled
        for level in sorted(chance.sample(self.levels, min(count, len(self.levels)))):
            target = self.target or chance.choice(("native", "native", *targets()))
            libraries = LIBRARIES if chance.random() < WITH_LIBRARIES else ()
            threads = chance.choice((1, 1, 2))
            order = self.first if chance.random() < REORDERED else None
            optimises = Target.parse(target).host.has("amx-tile") or chance.random() < OPTIMISED
            chosen.append(Setting(level, target, threads, CODE, None, libraries, order, optimises))
        if chosen and chance.random() < ON_DEVICES:
            threads_of = chance.choice(INTERPRETED)
            chosen.append(Setting(chance.choice(self.levels), threads_of, stage=DEVICE))
        if chosen and chance.random() < ON_DEVICES:
            chosen.append(Setting(chance.choice(self.levels), "gpu", stage=PASSES))
            device = chance.choice(devices())
            chosen.append(Setting(chance.choice(self.levels), device, optimises=False))
        return chosen


@dataclass
class Outcome:
    """What became of a batch: failures, what every setting refuses, programs with each op."""

    failures: list[Failure] = field(default_factory=list)
    refused: dict[str, list[int]] = field(default_factory=dict)
    """The seeds of programs by what they are refused with."""
    ops: Counter[str] = field(default_factory=Counter)
    programs: int = 0
    calls: int = 0


def targets() -> list[str]:
    """The targets that this machine runs."""
    return [name for name in TARGETS if _runs(name)]


@cache
def devices() -> list[str]:
    """The devices that there are here: the stand-in, and those with a driver."""
    return [name for name in DEVICES if _opens(name)]


def _opens(name: str) -> bool:
    try:
        relax_mlir.compile(_TINY, name)
        return True
    except (ExecutionError, UsageError):
        return False


def _runs(name: str) -> bool:
    try:
        return not lacking(Target.parse(name).host.needs)
    except UsageError:
        return False


def check(work: Work, begun: Callable[[str], None] = lambda what: None) -> Outcome:
    """Checks a batch; `begun` is told what begins, for the case that the process ends there."""
    outcome = Outcome()
    begun("writing programs")
    programs = _written(work, outcome)
    return check_programs(programs, work, outcome, begun)


def check_programs(
    programs: Sequence[Program],
    work: Work,
    outcome: Outcome,
    begun: Callable[[str], None] = lambda what: None,
) -> Outcome:
    """Checks programs that are written."""
    known, refusals = _interpreted(programs, work.sizes, outcome)
    for each in programs:
        if each.name in known and known[each.name].slopes:
            text = f"gradient: {known[each.name].slopes[0]}"
            outcome.failures.append(Failure(each.seed, INTERPRETER, text))
    failed = {failure.seed for failure in outcome.failures}
    memory: Memory = {}
    for setting in work.settings():
        left = [p for p in programs if p.seed not in failed and not refusals[p.seed]]
        if setting.is_of_device:  # which calls no libraries
            left = [p for p in left if "lib.function" not in p.text]
        begun(str(setting))
        found = _compared(left, known, setting, refusals, memory)
        outcome.failures += found
        failed |= {failure.seed for failure in found}
        outcome.calls += sum(len(known[p.name].samples) for p in left)
    _judge_refusals(programs, work, refusals, outcome)
    outcome.programs += len(programs)
    for each in programs:
        outcome.ops += Counter(each.ops.keys())
    return outcome


def _written(work: Work, outcome: Outcome) -> list[Program]:
    found = []
    for seed in range(work.first, work.first + work.count):
        try:
            found.append(program(seed))
        except Exception:
            outcome.failures.append(Failure(seed, "generator", _trace()))
    return found


def _trace() -> str:
    return "traceback: " + traceback.format_exc(limit=-4)


Refusals = dict[int, dict[str, str]]
"""Of each seed, what it is refused with under which setting."""


def _interpreted(
    programs: Sequence[Program], sizes: int, outcome: Outcome
) -> tuple[dict[str, Meaning], Refusals]:
    refusals: Refusals = {each.seed: {} for each in programs}
    try:
        return meanings(programs, sizes), refusals
    except Exception:
        known: dict[str, Meaning] = {}
    for each in programs:
        try:
            known |= meanings([each], sizes)
        except CompileError as error:
            refusals[each.seed][INTERPRETER] = str(error)
        except Exception:
            outcome.failures.append(Failure(each.seed, INTERPRETER, _trace()))
    return known, refusals


def _compared(
    programs: Sequence[Program],
    known: dict[str, Meaning],
    setting: Setting,
    refusals: Refusals,
    memory: Memory,
) -> list[Failure]:
    """Compares a batch, or where it cannot be compiled each of its programs."""
    if not programs:
        return []
    try:
        return compare(programs, known, setting, memory)
    except AssertionError as error:
        if len(programs) == 1:
            return [Failure(programs[0].seed, str(setting), f"writes: {error}")]
    except CompileError as error:
        if len(programs) == 1:
            if setting.doubts is None:  # a proof that is needed may be one of those
                refusals[programs[0].seed][str(setting)] = str(error)
            return []
    except Exception:
        if len(programs) == 1:
            return [Failure(programs[0].seed, str(setting), _trace())]
    middle = len(programs) // 2
    halves = (programs[:middle], programs[middle:])
    return [
        failure for half in halves for failure in _compared(half, known, setting, refusals, memory)
    ]


def _judge_refusals(
    programs: Sequence[Program], work: Work, refusals: Refusals, outcome: Outcome
) -> None:
    """What one setting refuses all have to refuse, with the same words."""
    for each in programs:
        found = refusals[each.seed]
        if not found:
            continue
        told = {
            str(setting): found.get(str(setting)) or refusal(each, setting)
            for setting in work.settings()
            if setting.doubts is None
        }
        texts = {message(text) for text in told.values()}
        is_right = each.fine is not None and _is_accepted(each, work)
        if is_right or len(texts) > 1:
            text = "; ".join(f"{name}: {message(text)}" for name, text in told.items())
            outcome.failures.append(Failure(each.seed, "levels", f"disagree: {text}"))
        else:
            outcome.refused.setdefault(texts.pop(), []).append(each.seed)


def _is_accepted(coarse: Program, work: Work) -> bool:
    """Whether a program is accepted with the annotations that it had."""
    fine = replace(coarse, text=coarse.fine or coarse.text)
    return all(refusal(fine, setting) is None for setting in work.settings()[:1])


def message(text: str | None) -> str:
    """The first error of a refusal, without its place."""
    if text is None:
        return "accepted"
    return text.splitlines()[0].partition("error: ")[2] or text.splitlines()[0]


__all__ = ["Outcome", "Work", "check", "check_programs", "targets"]
