"""Adds the gradient of a function: one that also returns the gradients of arguments.

    func.func @main(%x: tensor<?xf32, ...>) -> tensor<f32> {
      %0 = "graph.square"(%x)
      %1 = "graph.sum"(%0)
      return %1
      ->
    func.func @main_adjoint(%x: ...) -> (tensor<f32>, tensor<?xf32, ...>) {
      ...
      return %1, %gradient_of_x

Result 0 has to be a float of rank 0, the loss. Gradients are of the arguments that `wrt` names, by
`graph.name` or as `arg0`, `arg1`, ..., in that order; else of all tensors of floats. An exported
function returns its results, and then the gradients as a tuple.

Rules are in `relax_mlir/gradients`. Through an op with `graph.no_grad` nothing is differentiated,
and what an object of the host program returns has no gradient, if some object was given floats.
A call is differentiated by a private function `@f_pullback`, which computes the callee again: so
what a function marked `graph.noinline` computes is not saved for the gradient. Private functions
that are to be differentiated as a part of their callers are inlined before. A function or a tensor
program with `graph.gradient = @g` is differentiated by calls of `@g`: see
`gradients/operators/calls.py`.

A branch is computed again in reverse. A loop saves the state of each round, which therefore has
known dims; one with a condition runs a second time for that, once its rounds are counted.

Needs: known dims (`relax-infer-shapes`, `relax-inline-functions`, `relax-name-dims`), before
`relax-state-assumptions`. Leaves: `@f` as it was, and `@f_adjoint`. Fails at ops without a rule.
Source: TVM `Gradient`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import argument_name, graph_functions, is_public
from relax_mlir.analysis.trees import RESULT_TREE, tree_attribute, trees_on
from relax_mlir.bindings import func, ir
from relax_mlir.dialects.graph import TensorType, annotation_of
from relax_mlir.dialects.graph.elementwise import FLOATS
from relax_mlir.dialects.graph.tuples import Tree
from relax_mlir.gradients.functions import Functions
from relax_mlir.gradients.reverse import is_differentiable
from relax_mlir.passes import Pass, PassFailure


@dataclass(frozen=True)
class Gradient(Pass):
    """Adds the gradient of a function: one that also returns the gradients of arguments."""

    needs_verified: ClassVar[bool] = True

    function: str = "main"
    """The function that is differentiated."""
    wrt: tuple[str, ...] = ()
    """Names of the arguments; none stands for all tensors of floats."""

    def run(self, op: ir.Operation) -> None:
        """Adds one function to the module, and those for the functions that it calls."""
        function = differentiated(op, self.function)
        wrt = differentiable_arguments(function, self.wrt)
        results = len(function.type.results)
        adjoint = Functions(op).add_adjoint(function, wrt)
        if is_public(adjoint):
            trees = trees_on(adjoint, RESULT_TREE) or list(range(results))
            gradients: list[Tree] = list(range(results, results + len(wrt)))
            adjoint.attributes[RESULT_TREE] = tree_attribute([*trees, gradients])


def differentiated(module: ir.Operation, name: str) -> func.FuncOp:
    """The function of that name; raises PassFailure unless there is one, with a loss as result."""
    named = {each.name.value: each for each in graph_functions(module)}
    if name not in named:
        known = ", ".join(f"@{each}" for each in named)
        raise PassFailure(module, f"has no graph function '@{name}'; there is {known}")
    results = list(named[name].type.results)
    loss = annotation_of(results[0]) if results else None
    if not isinstance(loss, TensorType) or loss.dims != () or not isinstance(loss.element, FLOATS):
        got = f"'{results[0]}'" if results else "none"
        raise PassFailure(named[name], f"expects result 0 to be a float of rank 0, but got {got}")
    return named[name]


def differentiable_arguments(function: func.FuncOp, wrt: Sequence[str]) -> list[int]:
    """The indices of the arguments of those names; of all tensors of floats if there are none."""
    arguments = list(function.arguments)
    if not wrt:
        return [
            i
            for i, argument in enumerate(arguments)
            if isinstance(argument.type, ir.ShapedType) and is_differentiable(argument)
        ]
    names = [argument_name(function, i) for i in range(len(arguments))]
    for name in wrt:
        if name not in names:
            raise PassFailure(function, f"has no argument '{name}'; there is {', '.join(names)}")
        if not is_differentiable(arguments[names.index(name)]):
            raise PassFailure(
                function, f"has an argument '{name}' that is not of floats: it has no gradient"
            )
    return [names.index(name) for name in wrt]
