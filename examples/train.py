"""Trains a perceptron to tell three arms of a spiral apart, in batches of any size.

python examples/train.py
"""

import numpy as np

from relax_mlir.training import Trainer

MODULE = """
!x = tensor<?x2xf32, #graph.shape<["n", 2]>>
!h = tensor<?x64xf32, #graph.shape<["n", 64]>>
!y = tensor<?x3xf32, #graph.shape<["n", 3]>>
!label = tensor<?x1xi64, #graph.shape<["n", 1]>>
!one = tensor<?x1xf32, #graph.shape<["n", 1]>>

func.func @main(%x: !x {graph.name = "x"}, %label: !label {graph.name = "label"},
                %w1: tensor<2x64xf32> {graph.name = "w1"}, %b1: tensor<64xf32> {graph.name = "b1"},
                %w2: tensor<64x3xf32> {graph.name = "w2"}) -> (tensor<f32>, !y) {
  %0 = "graph.matmul"(%x, %w1) : (!x, tensor<2x64xf32>) -> !h
  %1 = "graph.add"(%0, %b1) : (!h, tensor<64xf32>) -> !h
  %2 = "graph.nn_silu"(%1) : (!h) -> !h
  %3 = "graph.matmul"(%2, %w2) : (!h, tensor<64x3xf32>) -> !y
  %4 = "graph.nn_log_softmax"(%3) {axis = 1 : i64} : (!y) -> !y
  %5 = "graph.gather_elements"(%4, %label) {axis = 1 : i64} : (!y, !label) -> !one
  %6 = "graph.mean"(%5) {axes = array<i64>, keepdims = false} : (!one) -> tensor<f32>
  %7 = "graph.negative"(%6) : (tensor<f32>) -> tensor<f32>
  return %7, %4 : tensor<f32>, !y
}
"""


def batch(generator: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of the spiral, and the arm that each is of."""
    label = generator.integers(0, 3, (n, 1))
    radius = generator.uniform(0.1, 2, (n, 1))
    angle = 2.5 * radius + label * (2 * np.pi / 3) + generator.normal(0, 0.1, (n, 1))
    point = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return point.astype(np.float32), label


def main() -> None:
    """Prints the loss, and the share of points that are told right."""
    generator = np.random.default_rng(0)
    parameters = {
        "w1": generator.normal(0, 1, (2, 64)).astype(np.float32),
        "b1": np.zeros(64, np.float32),
        "w2": generator.normal(0, 0.1, (64, 3)).astype(np.float32),
    }
    trainer = Trainer(MODULE, parameters, "adamw", weight_decay=0.01)
    for step in range(601):
        x, label = batch(generator, 64 + step % 7)
        loss, scores = trainer.step(x, label, rate=0.01)
        if step % 200 == 0:
            right = np.mean(scores.argmax(1) == label[:, 0])
            print(f"step {step}: loss {loss:.3f}, {right:.0%} right")


if __name__ == "__main__":
    main()
