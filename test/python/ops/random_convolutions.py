"""Random convolutions of one to three dims as tensor programs, and what they compute in NumPy.

    convolution = RandomConvolution(seed)
    convolution.text                             a module: @main(image, filters, bias, rest)
    for sizes in convolution.calls(): ..         arguments by convolution.arrays(sizes)

Elements are small integers, so that all sums are exact. Images are [n, g, c, y..] or
[n, y.., g, c]; dims of filters are in any order.
"""

import random
from collections.abc import Iterator, Mapping, Sequence

import ml_dtypes
import numpy as np

DTYPES = {
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64},
    **{"i8": np.int8, "i32": np.int32, "i64": np.int64},
}
_SUMS = {"f16": ("f16", "f32"), "bf16": ("bf16", "f32"), "i8": ("i8", "i32", "i64")}
_CALL = """%0 = "graph.call_tir"(%x, %w) {{callee = @convolve, sym_args = #graph.shape<[]>,
      operandSegmentSizes = array<i32: 1, 1{}>, resultSegmentSizes = array<i32: 1{}>}}
      : ({}, {}) -> {}"""


class RandomConvolution:
    """A convolution: `sizes` are those of the image by loops, n and h0 on, of which some vary."""

    def __init__(self, seed: int) -> None:
        """Chooses it; the same one for the same seed."""
        self._random = pick = random.Random(seed)
        choose = pick.choice
        self.rank = choose([1, 2, 2, 3])
        axes = range(self.rank)
        self.element = choose(["f32", "f32", *DTYPES])
        self.sum = choose(_SUMS.get(self.element, (self.element,)))
        self.groups = choose([0, 0, 1, 2, 3])
        self.window = [choose([1, 2, 3, 5]) for _ in axes]
        self.strides = [choose([1, 1, 2, 3]) for _ in axes]
        self.dilation = [choose([1, 1, 2]) for _ in axes]
        self.padding = [(choose([0, 0, 1, 2]), choose([0, 0, 1, 3])) for _ in axes]
        self.initial, self.is_last = choose([0, 2]), pick.random() < 0.5
        self.epilogue = choose([(), ("relu",), ("bias",), ("rest",), ("bias", "rest", "relu")])
        self.least = [max(1, 1 - self._rest(axis)) for axis in axes]
        self.extents = {"f": choose([1, 15, 16, 17, 33, 64, 65]), "c": choose([1, 2, 3, 8, 17])}
        self.extents |= {"g": self.groups, "n": choose([1, 2, 3])}
        self.extents |= {f"u{axis}": extent for axis, extent in enumerate(self.window)}
        more = [0, 1, 5, 9] if self.rank < 3 else [0, 1, 2]
        self.extents |= {f"h{axis}": least + choose(more) for axis, least in enumerate(self.least)}
        self.varying = {loop for loop in self._of_image if pick.random() < 0.5}
        self.filters = ["f", "c", *(["g"] if self.groups else []), *(f"u{axis}" for axis in axes)]
        pick.shuffle(self.filters)
        self.summed = ["c", *(f"u{axis}" for axis in axes)]
        pick.shuffle(self.summed)
        self.text = self._function() + self._main()

    def calls(self) -> Iterator[dict[str, int]]:
        """Extents of three calls; an image has room for one window, or for some."""
        for _ in range(3):
            sizes = {"n": self._random.choice([0, 1, 2, 3])}
            sizes |= {f"h{i}": x + self._random.choice([0, 1, 4]) for i, x in enumerate(self.least)}
            varying = {loop: size for loop, size in sizes.items() if loop in self.varying}
            yield {**self.extents, **varying}

    def arrays(self, sizes: Mapping[str, int]) -> list[np.ndarray]:
        """The image, the filters, the bias and the rest."""
        generator = np.random.default_rng(self._random.randrange(1 << 32))
        out = self._arranged("f", [f"y{axis}" for axis in range(self.rank)])
        known = {**sizes, **self._outer(sizes)}
        shapes = [
            ([known[loop] for loop in self._image], self.element),
            ([known[loop] for loop in self.filters], self.element),
            ([known[loop] if loop == "f" else 1 for loop in out], self.sum),
            ([known[loop] for loop in out], self.sum),
        ]
        most = 1 if self.sum in ("f16", "bf16") else 3
        return [
            generator.integers(-most, most + 1, shape).astype(DTYPES[element])
            for shape, element in shapes
        ]

    def exact(
        self, image: np.ndarray, filters: np.ndarray, bias: np.ndarray, rest: np.ndarray
    ) -> np.ndarray:
        """What it computes, in integers."""
        image, filters, bias, rest = (a.astype(np.int64) for a in (image, filters, bias, rest))
        widths = [(0, 0)] * image.ndim
        first = self._image.index("h0")
        widths[first : first + self.rank] = self.padding
        padded, total = np.pad(image, widths), np.full(rest.shape, self.initial)
        names = ["yxz"[int(loop[1])] if loop[0] == "h" else loop for loop in self._image]
        own = "".join(loop for loop in self.filters if loop[0] != "u")
        formula = f"{''.join(names)},{own}->{''.join(names).replace('c', 'f')}"
        for at in np.ndindex(*self.window):
            part, count = [slice(None)] * image.ndim, rest.shape[first : first + self.rank]
            for axis, (offset, step) in enumerate(zip(at, self.strides, strict=True)):
                begin = offset * self.dilation[axis]
                end = begin + (count[axis] - 1) * step + 1
                part[first + axis] = slice(begin, end, step)
            place = [at[int(x[1])] if x[0] == "u" else slice(None) for x in self.filters]
            total += np.einsum(formula, padded[tuple(part)], filters[tuple(place)])
        steps = {"bias": lambda y: y + bias, "rest": lambda y: rest - y, "relu": self._last}
        for name in self.epilogue:
            total = steps[name](total)
        return total

    def _last(self, total: np.ndarray) -> np.ndarray:
        return -total if self.sum[0] == "i" else np.maximum(total, 0)

    @property
    def _of_image(self) -> list[str]:
        return ["n", *(f"h{axis}" for axis in range(self.rank))]

    @property
    def _image(self) -> list[str]:
        return self._arranged("c", self._of_image[1:])

    def _arranged(self, channel: str, places: Sequence[str]) -> list[str]:
        """The dims of an image, or of a result."""
        channels = [*(["g"] if self.groups else []), channel]
        return ["n", *places, *channels] if self.is_last else ["n", *channels, *places]

    def _rest(self, axis: int) -> int:
        """What an image of no extent has for a window, but for its first element."""
        return sum(self.padding[axis]) - self.dilation[axis] * (self.window[axis] - 1)

    def _outer(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The extents of the result."""
        return {
            f"y{axis}": (sizes[f"h{axis}"] + self._rest(axis) - 1) // self.strides[axis] + 1
            for axis in range(self.rank)
        }

    def _sizes(self, loops: Sequence[str]) -> list[str]:
        """The extents of loops as text: numbers or expressions."""
        known = {**self.extents, **self._outer(self.extents)}
        texts = []
        for loop in loops:
            image = loop.replace("y", "h")
            if image not in self.varying:
                texts.append(str(known[loop]))
            elif loop[0] == "y":
                rest = self._rest(int(loop[1])) - 1
                text = f"{image} {'+-'[rest < 0]} {abs(rest)}"
                texts.append(f"({text}) floordiv {self.strides[int(loop[1])]} + 1")
            else:
                texts.append(loop)
        return texts

    def _annotated(self, loops: Sequence[str], element: str) -> str:
        sizes = self._sizes(loops)
        dims = ", ".join(size if size.isdigit() else f'"{size}"' for size in sizes)
        return f"{_plain(sizes, element)[:-1]}, #graph.shape<[{dims}]>>"

    def _function(self) -> str:
        """The tensor program."""
        places = [f"y{axis}" for axis in range(self.rank)]
        windows = [
            f"y{axis} * {self.strides[axis]} + u{axis} * {self.dilation[axis]}"
            for axis in range(self.rank)
        ]
        out = self._arranged("f", places)
        loops = ", ".join([*out, *self.summed])
        maps = [self._arranged("c", windows), self.filters, out]
        kinds = ['"parallel"'] * len(out) + ['"reduction"'] * len(self.summed)
        lists = ((self._image, self.element), (self.filters, self.element), (out, self.sum))
        annotated = [self._annotated(*each) for each in lists]
        x, w, y = (_plain(self._sizes(dims), element) for dims, element in lists)
        lines, padded, p = self._padded(x)
        start = f"{self.initial}.0" if self.sum[0] != "i" else str(self.initial)
        return f"""
func.func private @convolve(%x0: {annotated[0]}, %w0: {annotated[1]}, %y0: {annotated[2]})
    -> {annotated[2]} attributes {{tir.prim_func, tir.num_outs = 1 : i64}} {{
  %x = tensor.cast %x0 : {annotated[0]} to {x}
  %w = tensor.cast %w0 : {annotated[1]} to {w}
  %y = tensor.cast %y0 : {annotated[2]} to {y}
  {lines}
  %start = arith.constant {start} : {self.sum}
  %s = linalg.fill ins(%start : {self.sum}) outs(%y : {y}) -> {y}
  %0 = linalg.generic {{indexing_maps = [
        {", ".join(f"affine_map<({loops}) -> ({', '.join(dims)})>" for dims in maps)}],
      iterator_types = [{", ".join(kinds)}]}} ins({padded}, %w : {p}, {w}) outs(%s : {y}) {{
  ^bb0(%a: {self.element}, %b: {self.element}, %t: {self.sum}):
    {self._body()}
    linalg.yield %r : {self.sum}
  }} -> {y}
  %1 = tensor.cast %0 : {y} to {annotated[2]}
  return %1 : {annotated[2]}
}}"""

    def _padded(self, x: str) -> tuple[str, str, str]:
        """What puts the image between zeros, the result and its type."""
        lines, whole, extents = [], [], []
        for axis, (loop, size) in enumerate(
            zip(self._image, self._sizes(self._image), strict=True)
        ):
            zeros = sum(self.padding[int(loop[1])]) if loop[0] == "h" else 0
            if not size.isdigit():
                lines += [
                    f"%at{axis} = arith.constant {axis} : index",
                    f"%d{axis} = tensor.dim %x, %at{axis} : {x}",
                    f"%z{axis} = arith.constant {zeros} : index",
                    f"%e{axis} = arith.addi %d{axis}, %z{axis} : index",
                ]
                extents.append(f"%e{axis}")
            whole.append(str(int(size) + zeros) if size.isdigit() else "?")
        kind = _plain(whole, self.element)
        fronts = [self.padding[int(x[1])][0] if x[0] == "h" else 0 for x in self._image]
        own = [
            size if size.isdigit() else f"%d{i}" for i, size in enumerate(self._sizes(self._image))
        ]
        zero = "0" if self.element[0] == "i" else "0.0"
        lines += [
            f"%zero = arith.constant {zero} : {self.element}",
            f"%empty = tensor.empty({', '.join(extents)}) : {kind}",
            f"%zeros = linalg.fill ins(%zero : {self.element}) outs(%empty : {kind}) -> {kind}",
            f"%p = tensor.insert_slice %x into %zeros[{', '.join(map(str, fronts))}] "
            f"[{', '.join(own)}] [{', '.join('1' for _ in own)}] : {x} into {kind}",
        ]
        return ("\n  ".join(lines), "%p", kind) if any(map(any, self.padding)) else ("", "%x", x)

    def _body(self) -> str:
        """Products, in the type of the sums."""
        is_integer, names, lines = self.sum[0] == "i", ["%a", "%b"], []
        if self.element != self.sum:
            widen = "extsi" if is_integer else "extf"
            lines = [f"{x}1 = arith.{widen} {x} : {self.element} to {self.sum}" for x in names]
            names = [f"{x}1" for x in names]
        suffix = "i" if is_integer else "f"
        lines.append(f"%q = arith.mul{suffix} {', '.join(names)} : {self.sum}")
        return "\n    ".join([*lines, f"%r = arith.add{suffix} %t, %q : {self.sum}"])

    def _main(self) -> str:
        """The graph function, with an epilogue."""
        out = self._arranged("f", [f"y{axis}" for axis in range(self.rank)])
        x, w = (self._annotated(loops, self.element) for loops in (self._image, self.filters))
        y = self._annotated(out, self.sum)
        bias = [str(self.extents["f"]) if loop == "f" else "1" for loop in out]
        b = f"{_plain(bias, self.sum)[:-1]}, #graph.shape<[{', '.join(bias)}]>>"
        last = "negative" if self.sum[0] == "i" else "nn_relu"
        steps = {
            "bias": f'"graph.add"(%OLD, %b) : ({y}, {b}) -> {y}',
            "rest": f'"graph.subtract"(%r, %OLD) : ({y}, {y}) -> {y}',
            "relu": f'"graph.{last}"(%OLD) : ({y}) -> {y}',
        }
        lines = [_CALL.format(", 0" * 30, ", 0" * 7, x, w, y)]
        for i, name in enumerate(self.epilogue):
            lines.append(f"%{i + 1} = {steps[name].replace('OLD', str(i))}")
        return f"""
func.func @main(%x: {x}, %w: {w}, %b: {b}, %r: {y}) -> {y} {{
  {f"{chr(10)}  ".join(lines)}
  return %{len(self.epilogue)} : {y}
}}"""


def _plain(sizes: Sequence[str], element: str) -> str:
    """A type without annotation; what is no number varies."""
    return f"tensor<{'x'.join(size if size.isdigit() else '?' for size in sizes)}x{element}>"
