"""The rules of TOSA, by family: importing a module of them registers them.

Source: TOSA 1.0 specification.
"""

from . import elementwise, movement, products, quantized, reductions, shapes

__all__ = ["elementwise", "movement", "products", "quantized", "reductions", "shapes"]
