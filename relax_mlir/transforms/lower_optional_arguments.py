"""Passes whether an optional argument is there as an argument of its own.

    func.func @main(%x: !x, %w: tensor<?xf32, #graph.shape<["m"]>> {graph.optional}) -> !x {
      %0 = "graph.is_present"(%w)
      %1 = scf.if %0 -> !x { ... %w ... } else { ... }
      ->
    func.func @main(%x: !x, %w: tensor<?xf32> {graph.optional}, %p: i1 {graph.presence}) -> !x {
      %1 = scf.if %p -> !x {
        %2 = "graph.match_cast"(%w) : (tensor<?xf32>) -> tensor<?xf32, #graph.shape<["m"]>>
        ... %2 ...

An argument that is left out is a tensor of the same rank whose dims are 0. Its dims are checked,
and symbols that no other argument binds are bound, in the branches that read it.

Needs: no tuples; it is run automatically after they are taken apart. Leaves: no `graph.is_present`.
Fails at optional arguments that are read elsewhere, no tensors of known rank, updated in place,
    parameters to prepare, bound to values, or of private functions.
Source: ONNX `Optional`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from relax_mlir.analysis.functions import (
    HOST_OBJECT,
    INOUT,
    NAME,
    NUM_INPUTS,
    OPTIONAL,
    PRESENCE,
    VALUE,
    argument_attribute,
    argument_name,
    is_public,
)
from relax_mlir.analysis.signatures import functions_by_name
from relax_mlir.analysis.trees import ARGUMENT_TREE, read_trees, tree_attribute
from relax_mlir.bindings import func, ir, scf
from relax_mlir.dialects.graph import (
    IsPresentOp,
    MatchCastOp,
    TensorType,
    annotation_of,
)
from relax_mlir.dialects.graph.tuples import Tree
from relax_mlir.passes import Pass, PassFailure
from relax_mlir.rewriting import safe_erase


@dataclass(frozen=True)
class LowerOptionalArguments(Pass):
    """Passes whether an optional argument is there as an argument of its own."""

    takes_tuples: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        """Rewrites the functions of the module that have optional arguments."""
        for function in functions_by_name(op).values():
            if optional := unlowered(function):
                _check(function, optional)
                _lower(function, optional)


def unlowered(function: func.FuncOp) -> list[int]:
    """The optional arguments that no argument tells the presence of."""
    if "arg_attrs" not in function.attributes:
        return []
    count = len(function.type.inputs)
    return [
        index
        for index in range(count)
        if argument_attribute(function, index, OPTIONAL) is not None
        and (index + 1 == count or argument_attribute(function, index + 1, PRESENCE) is None)
    ]


def _check(function: func.FuncOp, optional: Sequence[int]) -> None:
    """Raises PassFailure at an argument that cannot be left out."""
    first = len(function.type.inputs)
    if NUM_INPUTS in function.attributes:
        first = ir.IntegerAttr(function.attributes[NUM_INPUTS]).value
    for index in optional:
        type_ = annotation_of(function.type.inputs[index])
        reason = None
        if not is_public(function) or function.is_external:
            reason = "of a function that is not exported"
        elif not isinstance(type_, TensorType) or type_.dims is None:
            reason = f"a '{function.type.inputs[index]}', not a tensor of known rank"
        elif argument_attribute(function, index, HOST_OBJECT) is not None:
            reason = "an object, which None may be"
        elif argument_attribute(function, index, INOUT) is not None:
            reason = "updated in place"
        elif argument_attribute(function, index, VALUE) is not None:
            reason = f"with '{VALUE}'"
        elif index >= first:
            reason = f"among its parameters ('{NUM_INPUTS}')"
        if reason is not None:
            name = argument_name(function, index)
            raise PassFailure(function, f"has the optional argument {index} '{name}', {reason}")


def _lower(function: func.FuncOp, optional: Sequence[int]) -> None:
    """Adds the arguments behind those that they tell of."""
    block, old = function.entry_block, list(function.arguments)
    boolean = ir.IntegerType.get_signless(1)
    for index, argument in enumerate(old):
        if index not in optional:
            argument.replace_all_uses_with(block.add_argument(argument.type, argument.location))
            continue
        type_ = annotation_of(argument)
        assert isinstance(type_, TensorType)
        opened = TensorType((None,) * len(type_.dims or ()), type_.element).to_mlir()
        tensor = block.add_argument(opened, argument.location)
        presence = block.add_argument(boolean, argument.location)
        _read_in_branches(argument, tensor, presence, f"{index} '{argument_name(function, index)}'")
    for _ in old:
        block.erase_argument(0)
    _write_signature(function, optional)


def _read_in_branches(argument: ir.Value, tensor: ir.Value, presence: ir.Value, name: str) -> None:
    """Replaces an argument by casts, in the branches that are run if it is there."""
    asked = [use.owner for use in argument.uses if isinstance(use.owner.opview, IsPresentOp)]
    for op in asked:
        if op.results[0].type != presence.type:
            raise PassFailure(op, f"has a result of '{op.results[0].type}', but tells an 'i1'")
        op.results[0].replace_all_uses_with(presence)
        safe_erase(op.opview)
    for use in list(presence.uses):
        branch = use.owner.opview
        if isinstance(branch, scf.IfOp) and use.operand_number == 0:
            readers = [use for use in argument.uses if _is_within(use.owner, branch.then_block)]
            if readers:
                with ir.InsertionPoint.at_block_begin(branch.then_block), branch.location:
                    cast = MatchCastOp.build(tensor, annotation_of(argument)).result
                for reader in readers:
                    reader.owner.operands[reader.operand_number] = cast
    for use in argument.uses:
        text = f"reads argument {name}, which may be absent, outside of a branch of"
        raise PassFailure(use.owner, f"{text} graph.is_present")


def _is_within(op: ir.Operation, block: ir.Block) -> bool:
    """Whether an op is in a block, at any depth."""
    at: ir.Operation | None = op.operation
    while at is not None:
        if at.block == block:
            return True
        parent = at.parent
        at = None if parent is None or isinstance(parent.opview, func.FuncOp) else parent.operation
    return False


def _write_signature(function: func.FuncOp, optional: Sequence[int]) -> None:
    attributes = function.attributes
    inputs = [argument.type for argument in function.arguments]
    type_ = ir.FunctionType.get(inputs, list(function.type.results))
    entries: list[ir.DictAttr] = []
    for index, entry in enumerate(ir.ArrayAttr(attributes["arg_attrs"])):
        entries.append(ir.DictAttr(entry))
        if index in optional:
            name = ir.StringAttr.get(f"{argument_name(function, index)}.present")
            entries.append(ir.DictAttr.get({NAME: name, PRESENCE: ir.UnitAttr.get()}))
    if NUM_INPUTS in attributes:  # all optional arguments are in front
        count = ir.IntegerAttr(attributes[NUM_INPUTS])
        attributes[NUM_INPUTS] = ir.IntegerAttr.get(count.type, count.value + len(optional))
    if ARGUMENT_TREE in attributes:
        trees = read_trees(attributes[ARGUMENT_TREE])
        attributes[ARGUMENT_TREE] = tree_attribute(_with_presence(trees, optional))
    attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
    attributes["function_type"] = ir.TypeAttr.get(type_)


def _with_presence(trees: Sequence[Tree], optional: Sequence[int]) -> list[Tree]:
    """Trees with a leaf more behind each optional one; others move up."""
    made: list[Tree] = []
    for tree in trees:
        if isinstance(tree, int):
            at = tree + sum(index < tree for index in optional)
            made += [at, at + 1] if tree in optional else [at]
        else:
            made.append(_with_presence(tree, optional))
    return made
