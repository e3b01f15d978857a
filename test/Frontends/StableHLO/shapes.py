# RUN: %PYTHON %s | FileCheck %s
"""Shape arithmetic becomes expressions, also in functions; regions become operators."""

from relax_mlir.frontends.stablehlo import from_stablehlo


def show(text, **options):
    """Prints what a module becomes."""
    print(from_stablehlo(text, **options).module)


# CHECK-LABEL: func.func @main
# CHECK-SAME: #graph.shape<["b", 4]>
# CHECK-NEXT: graph.concat
# CHECK-NEXT: graph.reshape
# CHECK-SAME: shape = #graph.shape<["4*b", 2]>
# CHECK-NEXT: return
# CHECK-SAME: #graph.shape<["4*b", 2]>
show(
    """
    func.func @main(%x: tensor<?x4xf32>) -> tensor<?x2xf32> {
      %0 = stablehlo.concatenate %x, %x, dim = 0
        : (tensor<?x4xf32>, tensor<?x4xf32>) -> tensor<?x4xf32>
      %n = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
      %1 = call @halves(%n, %0) : (tensor<i32>, tensor<?x4xf32>) -> tensor<?x2xf32>
      return %1 : tensor<?x2xf32>
    }
    func.func private @halves(%n: tensor<i32>, %x: tensor<?x4xf32>) -> tensor<?x2xf32> {
      %two = stablehlo.constant dense<2> : tensor<i32>
      %0 = stablehlo.multiply %n, %two : tensor<i32>
      %1 = stablehlo.reshape %0 : (tensor<i32>) -> tensor<1xi32>
      %2 = stablehlo.reshape %two : (tensor<i32>) -> tensor<1xi32>
      %3 = stablehlo.concatenate %1, %2, dim = 0
        : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %4 = stablehlo.dynamic_reshape %x, %3
        : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x2xf32>
      return %4 : tensor<?x2xf32>
    }
    """,
    shapes=[["b", 4]],
)

# CHECK-LABEL: func.func @main
# CHECK: graph.max
# CHECK-NOT: scf
# CHECK: graph.sort
# CHECK-SAME: descending = true
# CHECK: return
show(
    """
    func.func @main(%x: tensor<?x4xf32>) -> (tensor<4xf32>, tensor<?x4xf32>) {
      %init = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %init) applies stablehlo.maximum across dimensions = [0]
        : (tensor<?x4xf32>, tensor<f32>) -> tensor<4xf32>
      %1 = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %2 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %2 : tensor<i1>
      }) : (tensor<?x4xf32>) -> tensor<?x4xf32>
      return %0, %1 : tensor<4xf32>, tensor<?x4xf32>
    }
    """
)

# Sizes that JAX asserts are facts, from there on.
# CHECK-LABEL: func.func @main
# CHECK: graph.require
# CHECK-SAME: arg0_0 == arg1_0
show(
    """
    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %m = stablehlo.get_dimension_size %y, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %0 = stablehlo.compare EQ, %n, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.custom_call @shape_assertion(%0) {error_message = "differ"} : (tensor<i1>) -> ()
      %1 = stablehlo.add %x, %y : tensor<?xf32>
      return %1 : tensor<?xf32>
    }
    """
)
