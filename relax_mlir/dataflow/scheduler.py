"""Stages that are compiled for several devices, one of which each call is given.

    passes = "relax-split-streams,relax-map-nodes{policy=greedy target=vulkan}"
    compiled = relax_mlir.compile(module(edges, passes=passes), "vulkan")
    with Stream(stages_of(Scheduler(compiled), "edges")) as stream: ...

These passes make `edges_stage_0_on_cpu` and `edges_stage_0_on_device` of the first stage. Arrays
stay where the last stage left them, and are copied for one that runs elsewhere.
Source: HPVM, arXiv 1611.00860, sections 4.4 and 6.4.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from types import MappingProxyType
from typing import Any

from relax_mlir.errors import ExecutionError, RelaxError, UsageError
from relax_mlir.executable import Executable
from relax_mlir.runtime.device import DeviceArray

from .timeline import Timeline

CPU, DEVICE = SIDES = ("cpu", "device")
STATIC, PROFILED, GREEDY = POLICIES = ("static", "profiled", "greedy")
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Scheduler:
    """Chooses the device of each call of a compiled module's stages.

    By the policy "static" that is where `placed` has a stage, as {"blur": "cpu"}, else the device
    if there is a version for it; by "profiled" the one with the least of `times`, as
    {"blur_on_cpu": 0.002}, which `Timeline.medians` gives; by "greedy" the one with the fewest
    calls in progress, and of such the one where the last call of the stage was quicker.
    """

    def __init__(
        self,
        compiled: Executable,
        policy: str = GREEDY,
        placed: Mapping[str, str] = NOTHING,
        times: Mapping[str, float] = NOTHING,
        timeline: Timeline | None = None,
    ) -> None:
        """Raises UsageError for an unknown policy, or what another one is for.

        A timeline gets a track for each device, and a span for each call.
        """
        if policy not in POLICIES:
            raise UsageError(f"unknown policy '{policy}'; accepted are {', '.join(POLICIES)}")
        if (placed and policy != STATIC) or (times and policy != PROFILED):
            raise UsageError(f"'placed' is for the policy '{STATIC}', 'times' for '{PROFILED}'")
        self.compiled, self.policy = compiled, policy
        self._placed, self._times = placed, times
        self._timeline = Timeline() if timeline is None else timeline
        self._lock, self._running, self._last = Lock(), Counter[str](), dict[str, float]()
        for name, side in placed.items():
            if side not in self.sides(name):
                known = " and ".join(self.sides(name))
                raise UsageError(f"'{name}' has versions for {known}, not for '{side}'")

    def sides(self, name: str) -> list[str]:
        """The devices that have a version of a stage; raises UsageError if there are none."""
        functions = self.compiled.functions
        sides = [side for side in SIDES if f"{name}_on_{side}" in functions]
        if not sides:
            raise UsageError(f"no function '{name}_on_cpu' or '{name}_on_device' was compiled")
        return sides

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of functions that have versions."""
        names = (name.rpartition("_on_") for name in self.compiled.functions)
        return tuple(dict.fromkeys(name for name, _, side in names if name and side in SIDES))

    def __getitem__(self, name: str) -> MappedStage:
        """A stage by the name of its function before it was mapped; raises UsageError."""
        self.sides(name)
        return MappedStage(self, name)

    def _begin(self, name: str) -> str:
        """Chooses the device of a call, which begins."""
        sides = self.sides(name)
        with self._lock:
            if self.policy == STATIC:
                side = self._placed.get(name, sides[-1])
            elif self.policy == PROFILED:
                side = min(sides, key=lambda each: self._times.get(f"{name}_on_{each}", math.inf))
            else:
                side = min(sides, key=lambda each: self._load(name, each))
            self._running[side] += 1
        return side

    def _load(self, name: str, side: str) -> tuple[int, float]:
        return self._running[side], self._last.get(f"{name}_on_{side}", 0.0)

    def run(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """Calls a stage on the device that is chosen.

        Raises ExecutionError, with its name and the device, if it fails.
        """
        side = self._begin(name)
        version, memory = f"{name}_on_{side}", self.compiled.device
        own = Timeline()
        try:
            with own.span(SIDES.index(side), version):
                return self.compiled[version](*(self._copied(each, side) for each in arguments))
        except RelaxError as error:
            where = CPU if side == CPU or memory is None else memory.name
            raise ExecutionError(f"node '{name}' on {where}: {error}") from error
        finally:
            (span,) = own.spans
            self._timeline.spans.append(span)
            with self._lock:
                self._running[side] -= 1
                self._last[version] = span.end - span.begin

    def _copied(self, value: Any, side: str) -> Any:
        """An argument in memory of a device; scalars and shapes are on the host."""
        if isinstance(value, DeviceArray):
            return value.numpy() if side == CPU else value
        memory = self.compiled.device
        is_array = getattr(value, "shape", ()) != ()
        return memory.array(value) if side == DEVICE and memory and is_array else value


@dataclass(frozen=True)
class MappedStage:
    """A stage of a stream; a tuple of the stage before it is all of its arguments."""

    scheduler: Scheduler
    name: str

    def __call__(self, *items: Any) -> Any:
        """Computes an item, or one of several arguments; see `Scheduler.run`."""
        is_packed = len(items) == 1 and isinstance(items[0], tuple)
        return self.scheduler.run(self.name, items[0] if is_packed else items)
