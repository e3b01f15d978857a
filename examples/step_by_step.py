"""Runs the default pipeline pass by pass and shows what becomes of the graph function.

python examples/step_by_step.py
"""

from relax_mlir.analysis.functions import graph_functions
from relax_mlir.bindings import ir
from relax_mlir.diagnostics import parse_module
from relax_mlir.dialects import make_context
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import pipeline
from relax_mlir.tools.pretty import pretty

MODULE = """
!x = tensor<?x64xf32, #graph.shape<["n", 64]>>
!y = tensor<?x32xf32, #graph.shape<["n", 32]>>

func.func @main(%x: !x, %w: tensor<64x32xf32>, %b: tensor<32xf32>) -> !y {
  %0 = "graph.matmul"(%x, %w) : (!x, tensor<64x32xf32>) -> !y
  %1 = "graph.add"(%0, %b) : (!y, tensor<32xf32>) -> !y
  %2 = "graph.nn_relu"(%1) : (!y) -> !y
  %3 = "graph.nn_softmax"(%2) {axis = -1 : i64} : (!y) -> !y
  return %3 : !y
}
"""
LAST = "relax-plan-memory"
"""What follows writes native host code, which is long."""


def main() -> None:
    """Prints the graph functions whenever a pass has changed them."""
    with make_context(), ir.Location.unknown():
        module = parse_module(MODULE)
        shown = ""
        for element in Pipeline.parse(pipeline()).root.elements:
            Pipeline.parse(str(element)).run(module)
            text = "".join(pretty(f.operation) for f in graph_functions(module.operation))
            print(f"==== after {element}" + ("" if text != shown else ": no change"))
            if text != shown:
                print(text)
            shown = text
            if str(element) == LAST:
                break


if __name__ == "__main__":
    main()
