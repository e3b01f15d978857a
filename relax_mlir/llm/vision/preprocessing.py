"""From an image to the encoder's input: resized, cropped, and normalised, in one function.

    @main(image: uint8[h, w, 3], size: shape [a, b]) -> pixels: float32[1, 3, height, width]

The image is resized to a x b, of which the middle is made and nothing else; then each channel has
its mean and deviation. Source: Hugging Face's `CLIPImageProcessor`, `SiglipImageProcessor`.

In patches, a x b are units of merge x merge patches, each of which has its rows together:

    @main(image: uint8[h, w, 3], grid: shape [a, b])
      -> patches: float32[a * b * merge^2, 3 * patch^2]

Source: Hugging Face's `Qwen2VLImageProcessor`.

Tiles of one edge are those of the image at a multiple of it, r x c of them, and the whole at the
size of one; of these the last n are the result:

    @main(image: uint8[h, w, 3], size: shape [a, b], grid: shape [r, c], count: shape [n])
      -> tiles: float32[n, 3, edge, edge]

It is resized three times, as in Hugging Face's `Idefics3ImageProcessor`.
"""

from collections.abc import Mapping

from relax_mlir.bindings import ir
from relax_mlir.decompositions.emit import (
    concat,
    divide,
    multiply,
    permute,
    reshape,
    subtract,
    vector,
)
from relax_mlir.dialects.graph import TensorType, shape_value_type
from relax_mlir.llm.modules.nn import slice_axis
from relax_mlir.llm.vision.config import Normalisation, Preprocessing
from relax_mlir.llm.vision.exporting import export_main
from relax_mlir.llm.vision.idefics_config import TilePreprocessing
from relax_mlir.llm.vision.qwen_config import PatchPreprocessing
from relax_mlir.llm.vision.resampling import KERNELS, Axis, resampled, resampled_planes

HEIGHT, WIDTH = "h", "w"
"""Symbols: of the image."""
ROWS, COLUMNS = "a", "b"
"""Symbols: of the resized image, or of units in it."""
TILE_ROWS, TILE_COLUMNS, TILES = "r", "c", "n"
"""Symbols: of tiles, and how many are made."""
FACTS = tuple(f"1 <= {symbol}" for symbol in (HEIGHT, WIDTH, ROWS, COLUMNS))


def export_preprocessing(p: Preprocessing) -> str:
    """The text of the module for images of one size."""
    rows = Axis(HEIGHT, ROWS, f"({ROWS} - {p.height}) floordiv 2", p.height)
    columns = Axis(WIDTH, COLUMNS, f"({COLUMNS} - {p.width}) floordiv 2", p.width)

    def pixels(image: ir.Value, _: ir.Value) -> ir.Value:
        x = resampled(image, rows, columns, KERNELS[p.resample])
        return reshape(_normal(x, p.normalisation), [1, 3, p.height, p.width])

    return export_main(lambda: _inputs("size"), pixels, facts=FACTS)


def export_patches(p: PatchPreprocessing) -> str:
    """The text of the module for images in patches."""
    height, width = (f"{p.unit} * {count}" for count in (ROWS, COLUMNS))
    rows, columns = Axis(HEIGHT, height, 0, height), Axis(WIDTH, width, 0, width)

    def patches(image: ir.Value, _: ir.Value) -> ir.Value:
        x = _normal(resampled(image, rows, columns, KERNELS[p.resample]), p.normalisation)
        parts = reshape(x, [3, ROWS, p.merge, p.patch, COLUMNS, p.merge, p.patch])
        parts = permute(parts, [1, 4, 2, 5, 0, 3, 6])
        return reshape(parts, [f"{p.merge**2} * {ROWS} * {COLUMNS}", 3 * p.patch**2])

    return export_main(lambda: _inputs("grid"), patches, facts=FACTS)


def export_tiles(p: TilePreprocessing) -> str:
    """The text of the module for images in tiles."""
    kernel, edge = KERNELS[p.resample], p.edge
    height, width = f"{edge} * {TILE_ROWS}", f"{edge} * {TILE_COLUMNS}"

    def tiles(image: ir.Value, *_: ir.Value) -> ir.Value:
        x = resampled(image, Axis(HEIGHT, ROWS, 0, ROWS), Axis(WIDTH, COLUMNS, 0, COLUMNS), kernel)
        across = Axis(COLUMNS, width, 0, width)
        x = resampled_planes(x, Axis(ROWS, height, 0, height), across, kernel)
        whole = resampled_planes(x, Axis(height, edge, 0, edge), Axis(width, edge, 0, edge), kernel)
        parts = permute(reshape(x, [3, TILE_ROWS, edge, TILE_COLUMNS, edge]), [1, 3, 0, 2, 4])
        total = f"{TILE_ROWS} * {TILE_COLUMNS}"
        parts = reshape(parts, [total, 3, edge, edge])
        every = concat([parts, reshape(whole, [1, 3, edge, edge])], 0)
        return _normal(
            slice_axis(every, 0, f"{total} + 1 - {TILES}", f"{total} + 1"), p.normalisation
        )

    def inputs() -> Mapping[str, ir.Type]:
        grid = shape_value_type([TILE_ROWS, TILE_COLUMNS])
        return {**_inputs("size"), "grid": grid, "count": shape_value_type([TILES])}

    facts = [*FACTS, *(f"1 <= {symbol}" for symbol in (TILE_ROWS, TILE_COLUMNS, TILES))]
    facts.append(f"{TILES} <= {TILE_ROWS} * {TILE_COLUMNS} + 1")
    return export_main(inputs, tiles, facts=facts)


def _inputs(size: str) -> Mapping[str, ir.Type]:
    unsigned = ir.IntegerType.get_unsigned(8)
    image = TensorType.make([HEIGHT, WIDTH, 3], unsigned).to_mlir()
    return {"image": image, size: shape_value_type([ROWS, COLUMNS])}


def _normal(x: ir.Value, n: Normalisation) -> ir.Value:
    """Pixels [3, ...] of integers of 0 to 255."""
    f32 = ir.F32Type.get()
    mean, deviation = (reshape(vector(each, f32), [3, 1, 1]) for each in (n.mean, n.deviation))
    return divide(subtract(multiply(x, n.scale), mean), deviation)
