"""From an image to the encoder's input: resized, cropped, and normalised, in one function.

    @main(image: uint8[h, w, 3], size: shape [a, b]) -> pixels: float32[3, height, width]

The image is resized to a x b, of which the middle is made and nothing else; then each channel has
its mean and deviation. Source: Hugging Face's `CLIPImageProcessor`, `SiglipImageProcessor`.
"""

from relax_mlir.bindings import func, ir
from relax_mlir.decompositions.emit import divide, multiply, reshape, subtract, vector
from relax_mlir.dialects import graph, make_context
from relax_mlir.dialects.graph import TensorType, shape_value_type
from relax_mlir.llm.vision.config import Preprocessing
from relax_mlir.llm.vision.resampling import KERNELS, Axis, resampled

HEIGHT, WIDTH = "h", "w"
"""Symbols: of the image."""
ROWS, COLUMNS = "a", "b"
"""Symbols: of the resized image."""
FACTS = tuple(f"1 <= {symbol}" for symbol in (HEIGHT, WIDTH, ROWS, COLUMNS))


def export_preprocessing(p: Preprocessing) -> str:
    """The text of the module."""
    with make_context(), ir.Location.unknown(), graph.remembering():
        module = ir.Module.create()
        unsigned = ir.IntegerType.get_unsigned(8)
        image = TensorType.make([HEIGHT, WIDTH, 3], unsigned).to_mlir()
        pixels = TensorType.make([3, p.height, p.width], ir.F32Type.get()).to_mlir()
        with ir.InsertionPoint(module.body):
            main = func.FuncOp("main", ([image, shape_value_type([ROWS, COLUMNS])], [pixels]))
        facts = [ir.StringAttr.get(fact) for fact in FACTS]
        main.attributes["graph.facts"] = ir.ArrayAttr.get(facts)
        with ir.InsertionPoint(main.add_entry_block()):
            func.ReturnOp([_pixels(main.arguments[0], p)])
        return str(module)


def _pixels(image: ir.Value, p: Preprocessing) -> ir.Value:
    rows = Axis(HEIGHT, ROWS, f"({ROWS} - {p.height}) floordiv 2", p.height)
    columns = Axis(WIDTH, COLUMNS, f"({COLUMNS} - {p.width}) floordiv 2", p.width)
    x = multiply(resampled(image, rows, columns, KERNELS[p.resample]), p.scale)
    f32 = ir.F32Type.get()
    mean, deviation = (reshape(vector(each, f32), [3, 1, 1]) for each in (p.mean, p.deviation))
    return divide(subtract(x, mean), deviation)
