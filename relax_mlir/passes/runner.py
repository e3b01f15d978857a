"""Runs a parsed pipeline: our passes directly, sequences of upstream passes by MLIR.

A maximal sequence of upstream passes is run by one native pass manager, unless timing, observers or
IR printing need each pass separately.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import chain
from typing import TextIO

from relax_mlir.analysis.canonical_dims import write_canonically
from relax_mlir.analysis.malformed import malformed
from relax_mlir.bindings import ir, passmanager
from relax_mlir.data import elided, large_constants
from relax_mlir.diagnostics import Diagnostic, collecting, compile_error, diagnostics_of
from relax_mlir.dialects.graph import ShapeError, remembering
from relax_mlir.passes.base import Pass, PassFailure
from relax_mlir.passes.elements import Element, Nested, Upstream, find_pass, is_upstream
from relax_mlir.passes.reproducer import write_reproducer
from relax_mlir.passes.timing import Timing
from relax_mlir.symbolic import SymbolicError

Batch = tuple[Element, ...]
VERIFY = "relax-verify"
PREPARE = ("resolve-kinds", "flatten-tuples", "lower-host-objects", "lower-optional-arguments")
"""What runs before the first pass that does not take what these leave none of."""


class _Failed(Exception):
    """A pass failed; carries its diagnostics."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__()
        self.diagnostics = tuple(diagnostics)


@dataclass
class Runner:
    """The state of a run; its public fields are the arguments of `Pipeline.run`."""

    verify: bool = False
    print_before: bool | Collection[str] = False
    print_after: bool | Collection[str] = False
    print_after_change: bool = False
    print_module_scope: bool = False
    stream: TextIO | None = None
    timing: Timing | None = None
    reproducer: bool = False
    after_each: Callable[[str, ir.Operation], None] | None = None
    _verified: bool = False
    _is_flat: bool = False
    _managers: dict[tuple[str, Batch], passmanager.PassManager] = field(default_factory=dict)

    def run(self, pipeline: Nested, root: ir.Operation) -> None:
        """Runs every element on `root`, in order.

        Raises CompileError when a pass fails; then, or on a bug, leaves a reproducer if asked to.
        """
        batches = list(self._batches(pipeline.elements))
        with root.context, remembering():
            if not is_upstream(pipeline):
                if diagnostics := malformed(root):
                    raise compile_error(diagnostics)
                write_canonically(root)
            for index, batch in enumerate(batches):
                before = root.clone() if self.reproducer else None
                try:
                    self._run_batch(pipeline.anchor, batch, root, root)
                except Exception as error:
                    hint = ""
                    if before is not None:
                        rest = tuple(chain.from_iterable(batches[index:]))
                        hint = self._reproduce(pipeline.anchor, batch, rest, before)
                    if isinstance(error, _Failed):
                        notes = (Diagnostic("note", hint),) if hint else ()
                        raise compile_error(error.diagnostics + notes) from None
                    if hint:
                        _add_note(error, hint)
                    raise

    @property
    def _runs_separately(self) -> bool:
        prints = self.print_before or self.print_after or self.print_after_change
        return bool(prints) or self.timing is not None or self.after_each is not None

    def _batches(self, elements: Sequence[Element]) -> Iterator[Batch]:
        """Groups consecutive upstream elements, unless each has to run separately."""
        run: list[Element] = []
        for element in elements:
            if is_upstream(element) and not self._runs_separately:
                run.append(element)
                continue
            if run:
                yield tuple(run)
                run = []
            yield (element,)
        if run:
            yield tuple(run)

    def _run_batch(self, anchor: str, batch: Batch, op: ir.Operation, root: ir.Operation) -> None:
        first = batch[0]
        if isinstance(first, Pass):
            with self._observed(first, first.name(), op, root):
                self._run_pass(first, op)
        elif isinstance(first, Nested) and (self._runs_separately or not is_upstream(first)):
            with self._timed(f"'{first.anchor}' pipeline", first):
                self._run_nested(first, op, root)
        elif isinstance(first, Upstream) and self._runs_separately:
            with self._observed(first, first.name, op, root):
                self._run_native(anchor, batch, op)
        else:
            self._run_native(anchor, batch, op)

    def _run_nested(self, nested: Nested, op: ir.Operation, root: ir.Operation) -> None:
        # Collects the ops first: a pass may add siblings of the op that it runs on.
        children = [
            child.operation
            for region in op.regions
            for block in region.blocks
            for child in block.operations
            if child.operation.name == nested.anchor
        ]
        for child in children:
            for batch in self._batches(nested.elements):
                self._run_batch(nested.anchor, batch, child, root)

    def _run_pass(self, pass_: Pass, op: ir.Operation) -> None:
        if not self._is_flat and not pass_.takes_tuples:
            self._is_flat = True
            for prepares in [find_pass(f"relax-{name}") for name in PREPARE]:
                assert prepares is not None
                self._run_pass(prepares(), op)
        if pass_.needs_verified and not self._verified:
            checks = find_pass(VERIFY)
            assert checks is not None
            self._run_pass(checks(), op)
        with collecting(op.context, ("error",)) as errors, op.location:
            try:
                pass_.run(op)
            except PassFailure as failure:
                raise _Failed([*errors, failure.diagnostic]) from None
            except (ShapeError, SymbolicError) as error:
                at = getattr(error, "location", None) or op.location
                raise _Failed([*errors, Diagnostic.at(at, "error", str(error))]) from None
            except ir.MLIRError as error:
                raise _Failed([*errors, *diagnostics_of(error)]) from error
        if errors:
            raise _Failed(errors)
        self._verified = pass_.keeps_verified and (self._verified or pass_.name() == VERIFY)
        if self.verify:
            with self._timed("(verify)"):
                self._verify(pass_.name(), op)

    def _verify(self, name: str, op: ir.Operation) -> None:
        try:
            op.verify()
        except (ir.MLIRError, RuntimeError) as error:  # the latter of the message
            note = Diagnostic("note", f"found by the verifier after the pass '{name}'")
            raise _Failed([*diagnostics_of(error), note]) from None

    def _run_native(self, anchor: str, batch: Batch, op: ir.Operation) -> None:
        manager = self._managers.get((anchor, batch))
        if manager is None:
            manager = passmanager.PassManager.parse(str(Nested(anchor, batch)))
            manager.enable_verifier(self.verify)
            self._managers[anchor, batch] = manager
        try:
            manager.run(op)
        except (ir.MLIRError, RuntimeError) as error:  # the latter of the message
            raise _Failed(diagnostics_of(error)) from None

    def _timed(self, name: str, key: Element | None = None) -> AbstractContextManager[None]:
        if self.timing is None:
            return nullcontext()
        return self.timing.span(name, None if key is None else id(key))

    @contextmanager
    def _observed(
        self, element: Element, name: str, op: ir.Operation, root: ir.Operation
    ) -> Iterator[None]:
        """Times a pass and prints the IR before and after it, as requested."""
        shown = root if self.print_module_scope else op
        if _names(self.print_before, name):
            self._print(f"Before {name}", op, shown)
        before = _state(shown) if self.print_after_change else None
        with self._timed(name, element):
            yield
        wanted = _names(self.print_after, name)
        if wanted or (self.print_after_change and before != _state(shown)):
            self._print(f"After {name}", op, shown)
        if self.after_each is not None:
            try:
                self.after_each(name, root)
            except PassFailure as failure:
                raise _Failed([failure.diagnostic]) from None

    def _print(self, title: str, op: ir.Operation, shown: ir.Operation) -> None:
        where = ""
        if "sym_name" in op.attributes:
            where = f" ('{op.name}' operation: @{ir.StringAttr(op.attributes['sym_name']).value})"
        print(
            f"// -----// IR Dump {title}{where} //----- //\n{elided(shown)}",
            file=self.stream or sys.stderr,
        )

    def _reproduce(self, anchor: str, batch: Batch, rest: Batch, before: ir.Operation) -> str:
        """Writes a reproducer that starts at the failing pass of the batch."""
        for index in range(len(batch) - 1):
            step = before.clone()
            try:
                self._run_native(anchor, batch[index : index + 1], step)
            except _Failed:
                return write_reproducer(str(Nested(anchor, rest[index:])), before, self.verify)
            before = step
        return write_reproducer(str(Nested(anchor, rest[len(batch) - 1 :])), before, self.verify)


def _names(asked: bool | Collection[str], name: str) -> bool:
    return asked if isinstance(asked, bool) else name in asked


def _add_note(error: Exception, note: str) -> None:
    """Puts a line below the traceback; above it before Python 3.11."""
    if sys.version_info >= (3, 11):
        error.add_note(note)
    else:
        print(note, file=sys.stderr)


def _state(op: ir.Operation) -> tuple[str, list[ir.Attribute]]:
    """What a pass may change: the text, and the constants that it only names."""
    return elided(op), [constant.attributes["value"] for constant in large_constants(op)]
