"""Adds a step of training: the loss, its gradients, and the update of parameters in place.

    func.func @main(%x: ..., %w: tensor<4x8xf32>) -> tensor<f32> attributes {graph.num_inputs = 1}
      ->
    func.func @main_step(%x: ..., %w: ... {graph.inout = 1}, %m: ... {graph.inout = 2, ...},
                         %rate: tensor<f64>) -> (tensor<f32>, tensor<4x8xf32>, tensor<4x8xf32>)

Parameters are the arguments that `wrt` names, else the tensors of floats from `graph.num_inputs`
on. The step takes the arguments of the function, then the state of the optimizer, then the learning
rate; it returns the function's results, the parameters and the state. State begins as zeros; that
of a parameter `w` is called `w.momentum` (sgd), or `w.mean` and `w.square` (adam, adamw), with a
count of steps, `step`. Of half precision it is f32.

    optimizer   new parameter of a gradient g
    sgd         w - rate * g; with momentum, of v = momentum * v + g in place of g
    adam        w - rate * mean(g) / (sqrt(mean(g^2)) + epsilon), of running means
    adamw       the same, with weight decay as a step of its own

With `clip-norm`, gradients of a greater norm, all of them together, are scaled down to it.

Needs: as `relax-gradient`. Leaves: `@f` as it was, and `@f_step`. Fails at ops without a rule.
Source: TVM `training.SetupTrainer`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import (
    INOUT,
    NAME,
    NUM_INPUTS,
    argument_name,
    inout_arguments,
    is_public,
)
from relax_mlir.analysis.trees import RESULT_TREE, tree_attribute, trees_on
from relax_mlir.bindings import func, ir
from relax_mlir.decompositions.emit import (
    add,
    astype,
    divide,
    element_of,
    emit,
    minimum,
    multiply,
    rank_of,
    reduce,
    scalar,
    widen,
)
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import TensorType
from relax_mlir.dialects.graph.tuples import Tree
from relax_mlir.errors import UsageError
from relax_mlir.gradients.functions import Functions
from relax_mlir.gradients.optimizers import Adam, Optimizer, Sgd, Step
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import retyped

from .gradient import differentiable_arguments, differentiated

OPTIMIZERS = ("sgd", "adam", "adamw")


@dataclass(frozen=True)
class TrainStep(Pass):
    """Adds a step of training: the loss, its gradients, and the update of parameters in place."""

    needs_verified: ClassVar[bool] = True

    function: str = "main"
    """The function of the loss."""
    wrt: tuple[str, ...] = ()
    """Names of the parameters; none stands for those from `graph.num_inputs` on."""
    optimizer: str = "sgd"
    """One of sgd, adam, adamw."""
    momentum: float = 0
    nesterov: bool = False
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0
    clip_norm: float = 0
    """The greatest norm of the gradients; 0 stands for any."""

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            known = ", ".join(OPTIMIZERS)
            raise UsageError(f"unknown optimizer '{self.optimizer}'; there is {known}")
        for name in ("momentum", "beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise UsageError(f"{name} is {getattr(self, name)}, which is not from 0 to 1")
        for name in ("epsilon", "weight_decay", "clip_norm"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise UsageError(f"{name} is {getattr(self, name)}, which is not 0 or more")

    def run(self, op: ir.Operation) -> None:
        """Adds one function to the module, and those for the functions that it calls."""
        function = differentiated(op, self.function)
        wrt = self._parameters(function)
        step = Functions(op).add_adjoint(function, wrt, "step")
        _Training(step, function, wrt, self._chosen(), self.clip_norm).finish()

    def _chosen(self) -> Optimizer:
        if self.optimizer == "sgd":
            return Sgd(self.momentum, self.nesterov, self.weight_decay)
        means = self.beta1, self.beta2, self.epsilon, self.weight_decay
        return Adam(*means, decoupled=self.optimizer == "adamw")

    def _parameters(self, function: func.FuncOp) -> list[int]:
        """The indices of the arguments that are updated."""
        wrt = differentiable_arguments(function, self.wrt)
        if not self.wrt:
            first = len(function.arguments)
            if NUM_INPUTS in function.attributes:
                first = ir.IntegerAttr(function.attributes[NUM_INPUTS]).value
            wrt = [index for index in wrt if index >= first]
        if not wrt:
            raise PassFailure(
                function,
                f"has no parameters to train; name them with wrt, or mark them with '{NUM_INPUTS}'",
            )
        updated = set(inout_arguments(function).values())
        for index in wrt:
            argument, name = function.arguments[index], argument_name(function, index)
            if index in updated:
                raise PassFailure(function, f"updates its parameter '{name}' in place already")
            if not isinstance(argument.type, ir.ShapedType):
                raise PassFailure(function, f"has a scalar '{name}', which no step can update")
        return wrt


class _Training:
    """Goes on from a function that returns gradients to one that updates parameters."""

    def __init__(
        self,
        step: func.FuncOp,
        function: func.FuncOp,
        wrt: Sequence[int],
        optimizer: Optimizer,
        clip_norm: float,
    ) -> None:
        self.step, self.optimizer, self.clip_norm = step, optimizer, clip_norm
        self.taken = [argument_name(function, i) for i in range(len(function.arguments))]
        self.wrt, self.names = wrt, [self.taken[index] for index in wrt]
        self.block = step.entry_block
        self.end = self.block.operations[len(self.block.operations) - 1]
        values = list(self.end.operands)
        self.results = values[: len(values) - len(wrt)]
        self.gradients = values[len(values) - len(wrt) :]
        self.attributes = _argument_attributes(step)

    def finish(self) -> None:
        """Adds arguments and updates, and returns what is updated."""
        taken = len(self.block.arguments)
        states = [self._states(index, name) for index, name in zip(self.wrt, self.names)]
        kind = ir.RankedTensorType.get([], ir.IntegerType.get_signless(64))
        count = self._argument(kind, "step") if self.optimizer.counts else None
        rate = self._argument(ir.RankedTensorType.get([], ir.F64Type.get()), "rate")
        with ir.InsertionPoint(self.end), self.end.location:
            new_count = None if count is None else add(count, 1)
            step = Step(rate, new_count)
            parameters, new_states = [], []
            for index, gradient, state in zip(self.wrt, self._clipped(), states):
                parameter = self.block.arguments[index]
                wide = widen(parameter)
                new, more = self.optimizer.update(wide, gradient, state, step)
                parameters.append(_like(new, parameter))
                new_states += [_like(value, old) for value, old in zip(more, state, strict=True)]
            new_states += [] if new_count is None else [new_count]
            func.ReturnOp([*self.results, *parameters, *new_states])
        self.end.operation.erase()
        first = len(self.results)
        for position, index in enumerate([*self.wrt, *range(taken, taken + len(new_states))]):
            i64 = ir.IntegerType.get_signless(64)
            self.attributes[index][INOUT] = ir.IntegerAttr.get(i64, first + position)
        self._sign(first, len(parameters), len(new_states))

    def _states(self, index: int, name: str) -> list[ir.Value]:
        """New arguments for the state of a parameter."""
        parameter = TensorType.of(self.block.arguments[index])
        is_f64 = isinstance(parameter.element, ir.F64Type)
        kind = TensorType(parameter.dims, parameter.element if is_f64 else ir.F32Type.get())
        return [self._argument(kind.to_mlir(), f"{name}.{slot}") for slot in self.optimizer.slots]

    def _argument(self, kind: ir.Type, name: str) -> ir.Value:
        if name in self.taken:
            raise PassFailure(self.step, f"has an argument '{name}', as the step needs one")
        self.taken.append(name)
        self.attributes.append({NAME: ir.StringAttr.get(name)})
        return self.block.add_argument(kind, self.step.location)

    def _clipped(self) -> list[ir.Value]:
        """The gradients, scaled down if their norm is too great."""
        gradients = [widen(gradient) for gradient in self.gradients]
        if not self.clip_norm:
            return gradients
        squares = [
            astype(reduce(graph.SumOp, emit(graph.SquareOp, g), list(range(rank_of(g)))), _f64())
            for g in gradients
        ]
        total = squares[0]
        for square in squares[1:]:
            total = add(total, square)
        norm = add(emit(graph.SqrtOp, total), 1e-6)
        factor = minimum(divide(scalar(self.clip_norm, _f64()), norm), 1)
        return [multiply(g, astype(factor, element_of(g))) for g in gradients]

    def _sign(self, results: int, parameters: int, states: int) -> None:
        """Gives the function its type and attributes."""
        attributes = self.step.attributes
        block = self.block
        end = block.operations[len(block.operations) - 1]
        types = [a.type for a in block.arguments], [value.type for value in end.operands]
        attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
        entries = [ir.DictAttr.get(entry) for entry in self.attributes]
        attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
        if "res_attrs" in attributes:
            none = [ir.DictAttr.get({})] * (parameters + states)
            own = list(ir.ArrayAttr(attributes["res_attrs"]))[:results]
            attributes["res_attrs"] = ir.ArrayAttr.get([*own, *none])
        if NUM_INPUTS in attributes:
            del attributes[NUM_INPUTS]  # what is updated is not laid out once
        if is_public(self.step):
            before: list[Tree] = trees_on(self.step, RESULT_TREE) or list(range(results))
            last = results + parameters
            new: list[Tree] = [list(range(results, last)), list(range(last, last + states))]
            attributes[RESULT_TREE] = tree_attribute([*before, *new])


def _argument_attributes(function: func.FuncOp) -> list[dict[str, ir.Attribute]]:
    if "arg_attrs" not in function.attributes:
        return [{} for _ in function.arguments]
    entries = map(ir.DictAttr, ir.ArrayAttr(function.attributes["arg_attrs"]))
    return [{named.name: named.attr for named in entry} for entry in entries]


def _like(value: ir.Value, old: ir.Value) -> ir.Value:
    return retyped(astype(value, element_of(old)), old.type)


def _f64() -> ir.Type:
    return ir.F64Type.get()
