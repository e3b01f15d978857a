"""Imports a module of StableHLO, op by op, into a function of the graph dialect.

Functions are imported where they are called, so that shapes that are passed to them stay known.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from relax_mlir.bindings import func, ir
from relax_mlir.data import attribute_of
from relax_mlir.decompositions.emit import emit, scalar
from relax_mlir.diagnostics import Diagnostic, compile_error
from relax_mlir.dialects import graph
from relax_mlir.dialects.graph import ShapeError, TensorType
from relax_mlir.errors import CompileError, ModelError
from relax_mlir.source import Imported
from relax_mlir.symbolic import Expr, Fact, Facts, SymbolicError, const, parse, sym

from ..complex import Pair, joined, of_real, split
from ..elements import mlir_element
from ..known import Known
from . import folding, quantized
from .expansion import Expansions
from .node import Node
from .registry import Entry, Value, find
from .types import Declared, declared

MOST = 10
"""Operators that an error lists."""

RETURNS = ("stablehlo.return", "func.return", "chlo.return")
WITH_EFFECTS = (
    *("stablehlo.while", "stablehlo.if", "stablehlo.case", "stablehlo.custom_call", "func.call"),
    *("stablehlo.constant", "stablehlo.composite"),
)
"""Ops that are imported though none of their results has an element."""

BROADCASTS = ("chlo.broadcast_", "func.call")
"""What ops begin with that are element by element, of operands of several shapes."""

MALFORMED = (
    *(TypeError, ValueError, LookupError, ArithmeticError, AttributeError),
    *(ir.MLIRError, SymbolicError),
)

Shapes = Sequence["Sequence[str | int] | None"]
"""Dims of each argument, as expressions; None for those of the source."""


class Importer:
    """The import of one module. `file` is how errors name the source."""

    def __init__(self, source: ir.Module, file: str, dims: Mapping[str, int | str]) -> None:
        self.source = source
        self.file = file
        self.functions = {
            op.attributes["sym_name"].value: op.operation
            for op in source.body.operations
            if op.operation.name == "func.func"
        }
        self.chosen = {name: parse(str(value)) for name, value in dims.items()}
        self.used = {name for expr in self.chosen.values() for name in expr.symbols}
        self.facts = Facts()
        self.calls: list[str] = []
        self.expansions = Expansions(source.context)

    def run(self, shapes: Shapes, facts: Sequence[str]) -> Imported:
        """Imports the module into one of the graph dialect, in the current context."""
        main = self._main()
        body = main.regions[0].blocks[0]
        unknown = _unsupported(self.functions, body)
        if unknown:
            more = f", and {len(unknown) - MOST} more" if len(unknown) > MOST else ""
            names = ", ".join(list(unknown)[:MOST])
            message = f"has operators that are not supported: {names}{more}"
            raise self.error(next(iter(unknown.values())), message)
        self.facts = Facts.parse(facts)
        try:
            types = self._arguments(body, shapes)
        except (ModelError, *MALFORMED) as error:
            raise self.error(main, str(error)) from None
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            target = func.FuncOp("main", ([each.to_mlir() for each in types], []))
        entry = target.add_entry_block()
        with ir.InsertionPoint(entry):
            scope = Scope(self)
            arguments = [
                split(value) if declared(argument.type).is_complex else value
                for value, argument in zip(entry.arguments, body.arguments, strict=True)
            ]
            results = self._returned(body, scope.run(body, arguments))
            func.ReturnOp(results)
        kinds = [argument.type for argument in entry.arguments]
        type_ = ir.FunctionType.get(kinds, [result.type for result in results])
        target.attributes["function_type"] = ir.TypeAttr.get(type_)
        inputs = [f"arg{i}" for i in range(len(kinds))]
        target.arg_attrs = [_named(name) for name in inputs]
        if facts:
            texts = [ir.StringAttr.get(str(Fact.parse(fact))) for fact in facts]
            target.attributes["graph.facts"] = ir.ArrayAttr.get(texts)
        outputs = tuple(f"result_{i}" for i in range(len(results)))
        return Imported(module, {}, tuple(inputs), outputs)

    def _returned(self, body: ir.Block, values: Sequence[Value]) -> list[ir.Value]:
        """What the function yields, as tensors."""
        try:
            return [self.joined(value) for value in values]
        except ModelError as error:
            last = body.operations[len(body.operations) - 1].operation
            raise self.error(last, f"'{last.name}': {error}") from None

    def _main(self) -> ir.Operation:
        """The function to import: @main, or the one that is public."""
        if "main" in self.functions:
            chosen = [self.functions["main"]]
        else:
            chosen = [each for each in self.functions.values() if _is_public(each)]
        if len(chosen) != 1 or not len(chosen[0].regions[0].blocks):
            there = ", ".join(f"@{name}" for name in self.functions) or "none"
            raise self.error(self.source.operation, f"expects a function @main; there are {there}")
        return chosen[0]

    def _arguments(self, body: ir.Block, shapes: Shapes) -> list[TensorType]:
        """The types of the arguments, whose unknown dims are symbols."""
        if shapes and len(shapes) != len(body.arguments):
            raise ModelError(f"has {len(body.arguments)} arguments, but {len(shapes)} shapes")
        types, unused = [], set(self.chosen)
        for index, argument in enumerate(body.arguments):
            kind = declared(argument.type)
            given = shapes[index] if shapes else None
            dims = self._dims(kind, given, f"arg{index}", unused)
            types.append(TensorType.make(dims, mlir_element(kind.part)))
        if unused:
            there = ", ".join(sorted(self.used)) or "none"
            raise ModelError(f"no dim is called '{min(unused)}'; there are {there}")
        return types

    def _dims(
        self, kind: Declared, given: Sequence[str | int] | None, name: str, unused: set[str]
    ) -> list[Expr]:
        if given is not None and len(given) != len(kind.dims):
            raise ModelError(f"has an argument of type '{kind}' for the shape {list(given)}")
        dims = []
        for axis, dim in enumerate(kind.dims):
            own = f"{name}_{axis}" if given is None else str(given[axis])
            expr = parse(own) if dim is None or given is not None else const(dim)
            if dim is not None and expr.value not in (None, dim):
                raise ModelError(f"has an argument of type '{kind}' for the shape {given}")
            unused -= expr.symbols
            self.used |= expr.symbols
            dims.append(expr.substitute({s: self.chosen.get(s, sym(s)) for s in expr.symbols}))
        return [*dims, const(2)] if kind.is_complex else dims

    def error(self, op: ir.Operation, message: str) -> CompileError:
        """An error at an op of the source."""
        diagnostic = Diagnostic.at(op.location, "error", message)
        file = self.file if diagnostic.file in ("", "-") else diagnostic.file
        return compile_error([replace(diagnostic, file=file)])

    # Values.

    @property
    def dims(self) -> "Importer":
        """The symbols, as regions of all importers see them."""
        return self

    def fresh(self, wanted: str) -> str:
        """A symbol that is not used yet."""
        index, name = 0, wanted
        while name in self.used:
            index += 1
            name = f"{wanted}_{index}"
        self.used.add(name)
        return name

    def tensor(self, value: Value) -> ir.Value:
        """A value as a tensor."""
        if isinstance(value, ir.Value):
            return value
        if isinstance(value, Known):
            return emit_known(value)
        kinds = {Pair: "complex", tuple: "a tuple"}
        raise ModelError(f"has an operand that is {kinds[type(value)]}, which is not supported")

    def pair(self, value: Value) -> Pair:
        """A value as a complex tensor."""
        if isinstance(value, Pair):
            return Pair(self.tensor(value.real), self.tensor(value.imaginary))
        return of_real(self.tensor(value))

    def joined(self, value: Value) -> ir.Value:
        """A value as a tensor: complex ones with both parts along a last dim."""
        if isinstance(value, Pair):
            return joined(self.pair(value))
        return self.tensor(value)

    def read_integers(self, tensor: ir.Value, what: str) -> list[Expr]:
        """The elements of a vector, or a value, as symbols that run time binds."""
        i64 = ir.IntegerType.get_signless(64)
        dims = graph.known_dims(TensorType.of(tensor).dims)
        if dims is None or len(dims) > 1 or any(dim.value is None for dim in dims):
            raise ModelError(f"has {what} of type '{TensorType.of(tensor)}', expects a vector")
        if TensorType.of(tensor).element != i64:
            tensor = emit(graph.AstypeOp, tensor, dtype=i64)
        if not dims:
            tensor = emit(graph.ReshapeOp, tensor, shape=[1])
        count = dims[0].value if dims else 1
        assert count is not None
        shape = graph.TensorToShapeOp.build(tensor).result
        names = [self.fresh("k") for _ in range(count)]
        graph.MatchCastOp.build(shape, graph.shape_value_type([sym(name) for name in names]))
        return [sym(name) for name in names]

    def named(self, tensor: ir.Value) -> ir.Value:
        """A tensor with symbols for dims that are not known."""
        own = TensorType.of(tensor)
        dims = [sym(self.fresh("d")) if dim is None else dim for dim in own.dims or ()]
        wanted = own.with_dims(dims)
        return tensor if wanted == own else graph.MatchCastOp.build(tensor, wanted).result

    def cast(self, tensor: ir.Value, kind: Declared, part: str) -> ir.Value:
        """A result with the dims that the source says, and symbols for those nobody knows."""
        own = TensorType.of(tensor)
        if str(own.element) != part or (own.dims is not None and len(own.dims) != len(kind.dims)):
            raise ModelError(f"yields '{own}', but the type of its result is '{kind}'")
        dims: list[Expr] = []
        for dim, want in zip(own.dims or [None] * len(kind.dims), kind.dims):
            if want is not None and dim is not None and dim.value not in (None, want):
                raise ModelError(f"yields '{own}', but the type of its result is '{kind}'")
            if want is not None:
                dims.append(const(want))
            else:
                dims.append(sym(self.fresh("d")) if dim is None else dim)
        wanted = own.with_dims(dims)
        return tensor if wanted == own else graph.MatchCastOp.build(tensor, wanted).result


class Scope:
    """The values of a block, in which those of the blocks around it are seen.

    In one that is `lifted`, scalars are tensors: what a region computes of single elements is
    computed of all of them.
    """

    def __init__(
        self, importer: Importer, outer: "Scope | None" = None, lifted: bool = False
    ) -> None:
        self.importer = importer
        self.outer = outer
        self.lifted = lifted
        self.values: dict[ir.Value, Value] = {}

    def inner(self, lifted: bool = False) -> "Scope":
        """A scope of a region."""
        return Scope(self.importer, self, lifted or self.lifted)

    def isolated(self, lifted: bool = False) -> "Scope":
        """A scope of a function, which sees nothing of those that call it."""
        return Scope(self.importer, None, lifted or self.lifted)

    def find(self, value: ir.Value) -> Value:
        """What a value of the source is here."""
        scope: Scope | None = self
        while scope is not None:
            if value in scope.values:
                return scope.values[value]
            scope = scope.outer
        raise ModelError("uses a value that is not computed before it")

    def run(self, block: ir.Block, arguments: Sequence[Value]) -> list[Value]:
        """Imports the ops of a block; returns what it yields."""
        self.values.update(zip(block.arguments, arguments, strict=True))
        for view in block.operations:
            op = view.operation
            if op.name in RETURNS:
                return [self.find(operand) for operand in op.operands]
            self._import(op)
        return []

    def compute(self, value: ir.Value) -> Value:
        """A value of the block, by importing no more than the ops that it needs."""
        if not isinstance(value.owner, ir.Block) and not self.has(value):
            op = value.owner.operation
            for operand in op.operands:
                self.compute(operand)
            self._import(op)
        return self.find(value)

    def has(self, value: ir.Value) -> bool:
        """Whether a value of the source is computed here or around."""
        return value in self.values or (self.outer is not None and self.outer.has(value))

    def _import(self, op: ir.Operation) -> None:
        try:
            with self._location(op):
                results = self._results(op)
        except (ShapeError, ModelError) as error:
            raise self.importer.error(op, f"'{op.name}': {error}") from None
        except RecursionError:
            raise self.importer.error(op, f"'{op.name}': is nested too deeply") from None
        except MALFORMED as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise self.importer.error(op, f"'{op.name}': is malformed: {reason}") from error
        self.values.update(zip(op.results, results))

    def _location(self, op: ir.Operation) -> ir.Location:
        at = Diagnostic.at(op.location, "", "")
        file = self.importer.file if at.file in ("", "-") else at.file
        if not at.line:
            return ir.Location.name(at.file or op.name)
        return ir.Location.file(file, at.line, at.column)

    def _results(self, op: ir.Operation) -> Sequence[Value]:
        node = Node(self, op, [self.find(operand) for operand in op.operands])
        entry = find(key_of(op))
        assert entry is not None, op.name
        if self.lifted and not entry.elementwise:
            raise ModelError("is in a region of single elements, where it is not supported")
        folded = None if quantized.concerns(op) else folding.evaluate(node)
        if folded is not None:
            return [folded]
        if not self.lifted and _is_empty(op):
            return [_empty(result) for result in node.results]
        if not self.lifted and entry.elementwise and not op.name.startswith(BROADCASTS):
            node.operands = _of_one_shape(node)
        result = run_entry(node, entry)
        results = result if isinstance(result, tuple) else (result,)
        if self.lifted or op.name == "func.call":
            return results
        return [self._checked(value, own.type) for value, own in zip(results, op.results)]

    def _checked(self, value: Value, type_: ir.Type) -> Value:
        if isinstance(value, tuple):
            return value
        kind, cast = declared(type_), self.importer.cast
        if isinstance(value, Known):
            return value
        if isinstance(value, Pair):
            return Pair(
                *(cast(self.importer.tensor(each), kind, kind.part) for each in value.parts)
            )
        return cast(value, kind, kind.part)


def run_entry(node: Node, entry: Entry) -> "Value | tuple[Value, ...]":
    """What an op yields, by its entry of the table."""
    if quantized.concerns(node.op):
        return quantized.run(node, entry)
    is_complex = any(isinstance(each, Pair) for each in node.operands)
    if is_complex and entry.by_part:
        return _by_part(node, entry.function)
    if (is_complex or _is_complex(node)) and not entry.takes_pairs:
        own = find(f"complex.{node.name}")
        return own.function(node) if own else expanded(node)
    return entry.function(node)


def _of_one_shape(node: Node) -> list[Value]:
    """Operands whose dims are those of the others, which run time checks; scalars as they are."""
    rank = max(map(node.rank, range(len(node.operands))), default=0)
    shapes = {i: node.dims(i) for i in range(len(node.operands)) if node.rank(i) == rank}
    dims = [
        next((dim for dim in axis if dim.value is not None), axis[0])
        for axis in zip(*shapes.values())
    ]
    operands = list(node.operands)
    for i, shape in shapes.items():
        if shape != dims:
            operands[i] = _with_dims(node.importer, operands[i], dims)
    return operands


def _with_dims(importer: Importer, value: Value, dims: Sequence[Expr]) -> Value:
    if isinstance(value, Pair):
        return Pair(*(_with_dims(importer, part, dims) for part in value.parts))  # type: ignore[arg-type]
    tensor = importer.tensor(value)
    return graph.MatchCastOp.build(tensor, TensorType.of(tensor).with_dims(dims)).result


def _is_empty(op: ir.Operation) -> bool:
    """Whether no result of an op without effects has an element."""
    if op.name in WITH_EFFECTS or not len(op.results):
        return False
    kinds = [result.type for result in op.results]
    return all(isinstance(kind, ir.RankedTensorType) and 0 in _constants(kind) for kind in kinds)


def _constants(kind: ir.RankedTensorType) -> list[int]:
    """The dims; none where one is not a constant."""
    shape = list(kind.shape)
    return [] if any(dim < 0 for dim in shape) else shape


def _empty(kind: Declared) -> Value:
    """A tensor without elements."""
    zero = emit(graph.BroadcastToOp, scalar(0, mlir_element(kind.part)), shape=kind.shape)
    return Pair(zero, zero) if kind.is_complex else zero


def _is_complex(node: Node) -> bool:
    """Whether the first result is complex, though no operand is."""
    return bool(len(node.op.results)) and "complex<" in str(node.op.results[0].type)


def expanded(node: Node) -> "Value | tuple[Value, ...]":
    """What an op on single elements yields, by the ops that StableHLO's passes make of it."""
    block = node.importer.expansions.of(node.op)
    results = node.scope.isolated(lifted=True).run(block, node.operands)
    return results[0] if len(results) == 1 else tuple(results)


def _by_part(node: Node, function: "Callable[[Node], Value]") -> "Value | tuple[Value, ...]":
    """What an op that only moves elements yields of both parts."""
    real, imaginary = (function(node.for_part(part)) for part in (0, 1))
    if isinstance(real, ir.Value) and isinstance(imaginary, ir.Value):
        return Pair(real, imaginary)
    raise ModelError("has complex operands, of which it is not supported")


def emit_known(value: Known) -> ir.Value:
    """A known array as a tensor, at the insertion point."""
    if value.is_symbolic:
        return value.emit()
    element = mlir_element(value.element)
    kind = ir.RankedTensorType.get(list(value.array.shape), graph.storage_element(element))
    if not value.array.size:
        return graph.constant(ir.Attribute.parse(f"dense<> : {kind}"), element)
    return graph.constant(attribute_of(kind, value.array), element)


def key_of(op: ir.Operation) -> str:
    """The name by which the table has an op: of a custom call, what it calls."""
    if op.name == "stablehlo.custom_call":
        return f"@{ir.StringAttr(op.attributes['call_target_name']).value}"
    return op.name


def _unsupported(functions: Mapping[str, ir.Operation], body: ir.Block) -> dict[str, ir.Operation]:
    """The ops that a function runs and that are not supported, by what errors call them."""
    unknown: dict[str, ir.Operation] = {}
    seen: set[str] = set()
    blocks = [body]
    while blocks:
        for view in blocks.pop().operations:
            op = view.operation
            if op.name not in RETURNS and find(key_of(op)) is None:
                where = Diagnostic.at(op.location, "", "")
                at = f" (line {where.line})" if where.line else ""
                unknown.setdefault(f"'{key_of(op)}'{at}", op)
            for region in op.regions:
                blocks += region.blocks
            if op.name == "func.call":
                callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
                if callee in functions and callee not in seen:
                    seen.add(callee)
                    blocks += functions[callee].regions[0].blocks
    return unknown


def _is_public(function: ir.Operation) -> bool:
    """Whether a function may be called from outside of its module."""
    name = "sym_visibility"
    return name not in function.attributes or function.attributes[name].value == "public"


def _named(name: str) -> ir.DictAttr:
    return ir.DictAttr.get({"graph.name": ir.StringAttr.get(name)})
