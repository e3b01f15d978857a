"""Compiles what other frontends of MLIR write: here linalg on tensors, as torch-mlir does.

python examples/import_mlir.py
"""

import numpy as np

import relax_mlir

MODULE = """
#rows = affine_map<(i, j) -> (i, j)>
#bias = affine_map<(i, j) -> (j)>
func.func @main(%x: tensor<?x?xf32>, %w: tensor<?x4xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = tensor.dim %x, %c0 : tensor<?x?xf32>
  %0 = tensor.empty(%n) : tensor<?x4xf32>
  %1 = linalg.fill ins(%zero : f32) outs(%0 : tensor<?x4xf32>) -> tensor<?x4xf32>
  %2 = linalg.matmul ins(%x, %w : tensor<?x?xf32>, tensor<?x4xf32>)
      outs(%1 : tensor<?x4xf32>) -> tensor<?x4xf32>
  %3 = linalg.generic {indexing_maps = [#rows, #bias, #rows],
                       iterator_types = ["parallel", "parallel"]}
      ins(%2, %b : tensor<?x4xf32>, tensor<4xf32>) outs(%0 : tensor<?x4xf32>) {
  ^bb0(%p: f32, %q: f32, %out: f32):
    %s = arith.addf %p, %q : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<?x4xf32>
  return %3 : tensor<?x4xf32>
}
"""


def main() -> None:
    """Prints the signature, whose symbols the conversion finds, and compares three sizes."""
    exe = relax_mlir.compile(MODULE)
    print(exe["main"])
    generator = np.random.default_rng(0)
    for n, k in ((1, 1), (5, 3), (64, 17)):
        shapes = [(n, k), (k, 4), (4,)]
        x, w, b = (generator.standard_normal(shape, np.float32) for shape in shapes)
        error = np.abs(exe["main"](x, w, b) - np.maximum(x @ w + b, 0)).max()
        print(f"[{n}, {k}] @ [{k}, 4]: error {error:.0e}")


if __name__ == "__main__":
    main()
