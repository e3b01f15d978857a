"""Textual pipelines that mix the passes of this package with every pass of upstream MLIR.

    builtin.module(relax-fuse-ops{max-size=4},func.func(canonicalize,relax-inplace),symbol-dce)

A list without an anchor is for `builtin.module`. Anchors nest; the inner passes run on every op of
that name directly below. Names of this package's passes take precedence over upstream's.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TextIO

from relax_mlir.bindings import ir
from relax_mlir.errors import UsageError
from relax_mlir.passes.base import Pass
from relax_mlir.passes.elements import ANY, Nested, parse
from relax_mlir.passes.runner import Runner
from relax_mlir.passes.timing import Timing


@dataclass(frozen=True)
class Pipeline:
    """A checked pipeline; its `str` parses back to an equal one."""

    root: Nested

    @staticmethod
    def parse(text: str) -> "Pipeline":
        """Parses a pipeline and checks each name and option; needs no context.

        Raises PipelineError, which names the element and the nearest known name.
        """
        return Pipeline(parse(text))

    def run(
        self,
        module: ir.Module | ir.Operation,
        *,
        verify: bool = False,
        print_before: bool | Collection[str] = False,
        print_after: bool | Collection[str] = False,
        print_after_change: bool = False,
        print_module_scope: bool = False,
        stream: TextIO | None = None,
        timing: Timing | None = None,
        reproducer: bool = False,
        after_each: Callable[[str, ir.Operation], None] | None = None,
    ) -> None:
        """Runs the passes on a module in place.

        `verify` checks the IR after each pass. `print_before` and `print_after` name the passes
        before or after which the IR is printed (True: all), `print_after_change` prints it if it
        changed; `stream` is the output (None: standard error). `reproducer` writes a file that
        replays a failing pass, and prints the command. `after_each` is called with the name of each
        pass and the module after it, and may raise PassFailure.

        Raises CompileError with the located diagnostics of the pass that failed; the state of the
        module is undefined then. Exceptions of bugs in passes are propagated.
        """
        op = module.operation
        if self.root.anchor not in (ANY, op.name):
            raise UsageError(
                f"the pipeline is for '{self.root.anchor}', but got '{op.name}'; "
                f"write {op.name}({self.root.anchor}(...))"
            )
        Runner(
            verify=verify,
            print_before=print_before,
            print_after=print_after,
            print_after_change=print_after_change,
            print_module_scope=print_module_scope,
            stream=stream,
            timing=timing,
            reproducer=reproducer,
            after_each=after_each,
        ).run(self.root, op)

    def modules(self) -> set[str]:
        """The names of the Python modules that the passes consist of."""
        return {module for each in self.passes() for module in each.modules()}

    def registered(self) -> list[str]:
        """What the passes use that modules have registered, such as patterns."""
        return [text for each in self.passes() for text in each.registered()]

    def passes(self) -> Iterator[Pass]:
        """The passes of this package and loaded ones, in order; not those of MLIR."""
        return _passes(self.root)

    def __str__(self) -> str:
        return str(self.root)


def _passes(nested: Nested) -> Iterator[Pass]:
    for element in nested.elements:
        if isinstance(element, Nested):
            yield from _passes(element)
        elif isinstance(element, Pass):
            yield element
