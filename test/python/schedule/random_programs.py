"""Random tensor programs, with what NumPy says they compute."""

import random
from dataclasses import dataclass, field

import numpy as np
from scheduled import generic, program

IDS = "abcd"


@dataclass
class Known:
    """A tensor of the program: its name, its extents (a name is dynamic), its float64 value."""

    name: str
    dims: tuple
    value: np.ndarray

    @property
    def kind(self):
        return kind_of(self.dims)

    @property
    def map(self):
        return identity(len(self.dims))


def kind_of(dims):
    return f"tensor<{''.join(f'{d}x' if isinstance(d, int) else '?x' for d in dims)}f32>"


def identity(rank):
    names = ", ".join(IDS[:rank])
    return f"({names}) -> ({names})"


@dataclass
class RandomProgram:
    """Grows a program by random stages; `sizes` are the values of the dynamic extents."""

    seed: int
    sizes: dict = field(default_factory=dict)
    lines: list = field(default_factory=list)
    tensors: list = field(default_factory=list)
    inputs: list = field(default_factory=list)
    count: int = 0

    def __post_init__(self):
        self.random = random.Random(self.seed)
        self.sizes = {
            "n": self.random.choice([0, 1, 3, 17]),
            "m": self.random.choice([1, 5, 16, 33]),
        }
        ranks = [self.random.choice([1, 2, 2, 3]) for _ in range(2)]
        for position, rank in enumerate(ranks):
            dims = tuple(self.random.choice(["n", "m", 1, 4, 16, 24]) for _ in range(rank))
            shape = [self.sizes.get(d, d) for d in dims]
            value = np.random.default_rng(self.seed + position).standard_normal(shape)
            self.inputs.append(Known(f"%x{position}", dims, value.astype(np.float32)))
        self.tensors = [Known(k.name, k.dims, k.value.astype(np.float64)) for k in self.inputs]
        for dim, name in (("n", "%n"), ("m", "%m")):
            for known in self.inputs:
                if dim in known.dims and not any(name + " =" in line for line in self.lines):
                    self.lines.append(f"{name}_at = arith.constant {known.dims.index(dim)} : index")
                    self.lines.append(f"{name} = tensor.dim {known.name}, {name}_at : {known.kind}")
        steps = [self.unary, self.binary, self.reduce, self.permute, self.expand, self.collapse]
        steps += [self.slice, self.insert, self.take, self.pairs, self.diagonal]
        for _ in range(self.random.choice([2, 3, 5, 7])):
            self.random.choice(steps)(self.random.choice(self.tensors))

    def name(self):
        self.count += 1
        return f"%v{self.count}"

    def empty(self, dims):
        name = self.name()
        dynamic = ", ".join(f"%{d}" for d in dims if isinstance(d, str))
        self.lines.append(f"{name} = tensor.empty({dynamic}) : {kind_of(dims)}")
        return name

    def keep(self, name, dims, value):
        self.tensors.append(Known(name, tuple(dims), value))

    def stage(self, operands, dims, target_map, kinds, body, start=None):
        out, result = start or self.empty(dims), self.name()
        self.lines.append(
            generic(result, operands, [(out, kind_of(dims), target_map)], kinds, body)
        )
        return result

    def unary(self, x):
        op, function = self.random.choice([
            ("%t = arith.addf %p, %p : f32", lambda v: v + v),
            ("%t = math.tanh %p : f32", np.tanh),
            ("%s = math.absf %p : f32\n%u = math.sqrt %s : f32\n%t = arith.mulf %u, %p : f32",
             lambda v: np.sqrt(np.abs(v)) * v),
        ])  # fmt: skip
        body = f"^bb0(%p: f32, %o: f32):\n{op}\nlinalg.yield %t : f32"
        result = self.stage([(x.name, x.kind, x.map)], x.dims, x.map, "p" * len(x.dims), body)
        self.keep(result, x.dims, function(x.value))

    def binary(self, x):
        others = [y for y in self.tensors if y.dims == x.dims or self._broadcasts(y, x)]
        y = self.random.choice(others)
        if y.dims == x.dims:
            map_, other = x.map, y.value
        else:
            axis = x.dims.index(y.dims[0])
            map_ = f"({', '.join(IDS[: len(x.dims)])}) -> ({IDS[axis]})"
            other = y.value.reshape([-1 if i == axis else 1 for i in range(len(x.dims))])
        body = """^bb0(%p: f32, %q: f32, %o: f32):
        %s = arith.mulf %q, %p : f32
        %t = arith.subf %s, %q : f32
        linalg.yield %t : f32"""
        operands = [(x.name, x.kind, x.map), (y.name, y.kind, map_)]
        result = self.stage(operands, x.dims, x.map, "p" * len(x.dims), body)
        self.keep(result, x.dims, other * x.value - other)

    def pairs(self, x):
        """x[.., a, ..] - 2 * x[.., b, ..] for all a and b of an axis."""
        if not 1 <= len(x.dims) <= 3:
            return
        axis = self.random.randrange(len(x.dims))
        dims = [*x.dims[:axis], x.dims[axis], *x.dims[axis:]]
        names = IDS[: len(dims)]
        reads = [names[:axis] + names[axis + 1 :], names[: axis + 1] + names[axis + 2 :]]
        maps = [f"({', '.join(names)}) -> ({', '.join(read)})" for read in reads]
        body = """^bb0(%p: f32, %q: f32, %o: f32):
        %s = arith.addf %q, %q : f32
        %t = arith.subf %p, %s : f32
        linalg.yield %t : f32"""
        operands = [(x.name, x.kind, map_) for map_ in maps]
        result = self.stage(operands, dims, identity(len(dims)), "p" * len(dims), body)
        first, second = (np.expand_dims(x.value, axis + i) for i in range(2))
        self.keep(result, dims, first - 2 * second)

    def diagonal(self, x):
        """x[.., a, a], or twice x[a, ..] written to [a, a, ..] of a filled tensor."""
        equal = [i for i in range(len(x.dims) - 1) if x.dims[i] == x.dims[i + 1]]
        names = IDS[: len(x.dims)]
        if equal:
            at = self.random.choice(equal)
            dims = [*x.dims[:at], *x.dims[at + 1 :]]
            own = names[:-1]
            source = f"({', '.join(own)}) -> ({', '.join(own[: at + 1] + own[at:])})"
            body = "^bb0(%p: f32, %o: f32):\nlinalg.yield %p : f32"
            operands = [(x.name, x.kind, source)]
            result = self.stage(operands, dims, identity(len(dims)), "p" * len(dims), body)
            value = np.moveaxis(np.diagonal(x.value, 0, at, at + 1), -1, at)
            self.keep(result, dims, value)
        elif 1 <= len(x.dims) <= 2:
            dims = [x.dims[0], *x.dims]
            filled = self.filled(dims, "3.0")
            target = f"({', '.join(names)}) -> ({', '.join(names[0] + names)})"
            body = "^bb0(%p: f32, %o: f32):\n%t = arith.addf %p, %p : f32\nlinalg.yield %t : f32"
            operands = [(x.name, x.kind, x.map)]
            result = self.stage(operands, dims, target, "p" * len(names), body, filled)
            value = np.full([self.sizes.get(d, d) for d in dims], 3.0)
            at = np.arange(value.shape[0])
            value[at, at] = 2 * x.value
            self.keep(result, dims, value)

    def filled(self, dims, start):
        constant, filled, kind = self.name(), self.name(), kind_of(dims)
        self.lines.append(f"{constant} = arith.constant {start} : f32")
        out = self.empty(dims)
        self.lines.append(
            f"{filled} = linalg.fill ins({constant} : f32) outs({out} : {kind}) -> {kind}"
        )
        return filled

    @staticmethod
    def _broadcasts(y, x):
        return len(y.dims) == 1 and y.dims[0] in x.dims

    def reduce(self, x):
        axis = self.random.randrange(len(x.dims)) if x.dims else None
        if axis is None:
            return
        op, function, start = self.random.choice([
            ("arith.addf", lambda v: v.sum(axis), "0.0"),
            ("arith.maximumf", lambda v: v.max(axis, initial=-7.0), "-7.0"),
        ])  # fmt: skip
        dims = [d for i, d in enumerate(x.dims) if i != axis]
        filled = self.filled(dims, start)
        remaining = ", ".join(c for i, c in enumerate(IDS[: len(x.dims)]) if i != axis)
        target = f"({', '.join(IDS[: len(x.dims)])}) -> ({remaining})"
        kinds = "".join("r" if i == axis else "p" for i in range(len(x.dims)))
        body = f"^bb0(%p: f32, %o: f32):\n%t = {op} %o, %p : f32\nlinalg.yield %t : f32"
        result = self.stage([(x.name, x.kind, x.map)], dims, target, kinds, body, filled)
        self.keep(result, dims, function(x.value))

    def permute(self, x):
        order = self.random.sample(range(len(x.dims)), len(x.dims))
        dims = [x.dims[i] for i in order]
        names = ", ".join(IDS[: len(dims)])
        source = ", ".join(IDS[order.index(i)] for i in range(len(dims)))
        body = "^bb0(%p: f32, %o: f32):\nlinalg.yield %p : f32"
        operands = [(x.name, x.kind, f"({names}) -> ({source})")]
        result = self.stage(operands, dims, identity(len(dims)), "p" * len(dims), body)
        self.keep(result, dims, x.value.transpose(order))

    def expand(self, x):
        axes = [i for i, d in enumerate(x.dims) if d in (4, 16, 24)]
        if not axes or len(x.dims) > 3:
            return
        axis = self.random.choice(axes)
        dims = [*x.dims[:axis], x.dims[axis] // 4, 4, *x.dims[axis + 1 :]]
        groups = [[i + (i > axis)] for i in range(len(x.dims))]
        groups[axis] = [axis, axis + 1]
        sizes = ", ".join(f"%{d}" if isinstance(d, str) else str(d) for d in dims)
        result = self.name()
        self.lines.append(
            f"{result} = tensor.expand_shape {x.name} {groups} output_shape [{sizes}]"
            f" : {x.kind} into {kind_of(dims)}"
        )
        self.keep(result, dims, x.value.reshape([self.sizes.get(d, d) for d in dims]))

    def collapse(self, x):
        pairs = [
            i for i in range(len(x.dims) - 1) if all(isinstance(d, int) for d in x.dims[i : i + 2])
        ]
        if not pairs:
            return
        at = self.random.choice(pairs)
        dims = [*x.dims[:at], x.dims[at] * x.dims[at + 1], *x.dims[at + 2 :]]
        groups = [[i + (i > at)] for i in range(len(dims))]
        groups[at] = [at, at + 1]
        result = self.name()
        self.lines.append(
            f"{result} = tensor.collapse_shape {x.name} {groups} : {x.kind} into {kind_of(dims)}"
        )
        self.keep(result, dims, x.value.reshape([self.sizes.get(d, d) for d in dims]))

    def slice(self, x):
        axes = [i for i, d in enumerate(x.dims) if isinstance(d, int) and d >= 4]
        if not axes:
            return
        axis = self.random.choice(axes)
        begin, step = self.random.choice([(0, 1), (1, 1), (1, 2)])
        size = (x.dims[axis] - begin) // step
        dims = [size if i == axis else d for i, d in enumerate(x.dims)]
        sizes = ", ".join(f"%{d}" if isinstance(d, str) else str(d) for d in dims)
        offsets = ", ".join(str(begin if i == axis else 0) for i in range(len(dims)))
        steps = ", ".join(str(step if i == axis else 1) for i in range(len(dims)))
        result = self.name()
        self.lines.append(
            f"{result} = tensor.extract_slice {x.name}[{offsets}] [{sizes}] [{steps}]"
            f" : {x.kind} to {kind_of(dims)}"
        )
        window = [slice(None)] * len(dims)
        window[axis] = slice(begin, begin + step * size, step)
        self.keep(result, dims, x.value[tuple(window)])

    def insert(self, x):
        axes = [i for i, d in enumerate(x.dims) if isinstance(d, int)]
        if not axes:
            return
        axis = self.random.choice(axes)
        dims = [d + 3 if i == axis else d for i, d in enumerate(x.dims)]
        shape = [self.sizes.get(d, d) for d in dims]
        filled, result, kind = self.filled(dims, "2.0"), self.name(), kind_of(dims)
        sizes = ", ".join(f"%{d}" if isinstance(d, str) else str(d) for d in x.dims)
        offsets = ", ".join("1" if i == axis else "0" for i in range(len(dims)))
        steps = ", ".join("1" for _ in dims)
        self.lines.append(
            f"{result} = tensor.insert_slice {x.name} into {filled}[{offsets}] [{sizes}] [{steps}]"
            f" : {x.kind} into {kind}"
        )
        value = np.full(shape, 2.0)
        window = [slice(None)] * len(dims)
        window[axis] = slice(1, 1 + x.dims[axis])
        value[tuple(window)] = x.value
        self.keep(result, dims, value)

    def take(self, x):
        axes = [i for i, d in enumerate(x.dims) if isinstance(d, int)]
        if not axes:
            return
        axis = self.random.choice(axes)
        extent = x.dims[axis]
        steps = [f"%i{i} = linalg.index {i} : index" for i in range(len(x.dims))]
        indices = ", ".join("%picked" if i == axis else f"%i{i}" for i in range(len(x.dims)))
        body = "\n".join([
            "^bb0(%o: f32):",
            *steps,
            "%five = arith.constant 5 : index",
            f"%extent = arith.constant {extent} : index",
            f"%scaled = arith.muli %i{axis}, %five : index",
            "%picked = arith.remui %scaled, %extent : index",
            f"%t = tensor.extract {x.name}[{indices}] : {x.kind}",
            "linalg.yield %t : f32",
        ])  # fmt: skip
        result = self.stage([], x.dims, x.map, "p" * len(x.dims), body)
        self.keep(result, x.dims, x.value.take(np.arange(extent) * 5 % extent, axis))

    def text(self):
        """The program that returns its last tensor and another one, and those tensors."""
        made = self.tensors[2:] or self.tensors[:1]
        results = [made[-1], self.random.choice(made)]
        kinds = [known.kind for known in results]
        last = "return " + ", ".join(known.name for known in results)
        return program(
            [known.kind for known in self.inputs], kinds, "\n".join([*self.lines, last])
        ), results
