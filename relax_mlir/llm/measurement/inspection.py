"""Describes a loaded model and its compiled code, as text."""

from dataclasses import fields

from relax_mlir.llm.generation.model import LanguageModel
from relax_mlir.llm.generation.session import Session

WARM_UP = 2  # steps until no step allocates


def describe(model: LanguageModel) -> str:
    """Configuration, kernels, memory and the work of one decode step."""
    main = model.executable.metadata["functions"]["main"]
    layers = model.config.num_layers
    lines = ["configuration"]
    for field in fields(model.config):
        value = getattr(model.config, field.name)
        shown = sorted(value) if isinstance(value, frozenset) else value
        lines.append(f"  {field.name:20} {shown}")
    lines += [f"  {'parameters':20} {model.num_parameters:,}", "", "calls of kernels in a step"]
    for kernel, count in sorted(main["calls"].items(), key=lambda item: -item[1]):
        lines.append(f"  {kernel:48} {count:>5}")
    lines.append(f"  {'in all':48} {sum(main['calls'].values()):>5}")
    lines.append(f"  {'in each layer':48} {kernels_per_layer(main['calls'], layers):>5}")
    arena = " + ".join(main["arena_bytes"]) or "0"
    lines += ["", "arena in bytes, of n new tokens after m of capacity c and r rows", f"  {arena}"]
    lines += ["", "work of a decode step after 2 tokens"]
    for counter, count in step_work(model.session()).items():
        lines.append(f"  {counter:20} {count}")
    return "\n".join([*lines, "", f"compiled for {model.executable.metadata['target']}"])


def kernels_per_layer(calls: dict[str, int], layers: int) -> int:
    """Kernel calls that every layer makes: those whose count is a multiple of the layers."""
    return sum(count // layers for count in calls.values())


def step_work(session: Session) -> dict[str, int]:
    """The increase of the runtime's counters by one decode step; `session` must be empty."""
    for _ in range(WARM_UP):
        session.append([0])
    before = session.executable.counters()
    session.append([0])
    after = session.executable.counters()
    return {name: after[name] - before[name] for name in after}
