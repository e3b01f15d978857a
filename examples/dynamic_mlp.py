"""Compiles a perceptron once and calls it at three batch sizes.

python examples/dynamic_mlp.py
"""

import numpy as np

import relax_mlir

MODULE = """
!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!h = tensor<?x128xf32, #graph.shape<["n", 128]>>
!y = tensor<?x10xf32, #graph.shape<["n", 10]>>

func.func @main(%x: !x {graph.name = "x"}, %w1: tensor<64x128xf32> {graph.name = "w1"},
                %w2: tensor<128x10xf32> {graph.name = "w2"}) -> !y {
  %0 = "graph.matmul"(%x, %w1) : (!x, tensor<64x128xf32>) -> !h
  %1 = "graph.nn_relu"(%0) : (!h) -> !h
  %2 = "graph.matmul"(%1, %w2) : (!h, tensor<128x10xf32>) -> !y
  %3 = "graph.nn_softmax"(%2) {axis = -1 : i64} : (!y) -> !y
  return %3 : !y
}
"""


def main() -> None:
    """Prints the likeliest class of each row."""
    exe = relax_mlir.compile(MODULE)
    print(exe["main"])
    generator = np.random.default_rng(0)
    w1 = generator.standard_normal((64, 128), np.float32)
    w2 = generator.standard_normal((128, 10), np.float32)
    for n in (1, 4, 7):
        x = generator.standard_normal((n, 64), np.float32)
        probabilities = exe["main"](x, w1, w2)
        print(f"n = {n}: classes {probabilities.argmax(axis=1)}")


if __name__ == "__main__":
    main()
