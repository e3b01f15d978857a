# RUN: %PYTHON %s | FileCheck %s
"""Quantised tensors are their integers; ops are of floats where integers do not say the same."""

from relax_mlir.frontends.stablehlo import from_stablehlo


def show(text):
    """Prints what a module becomes, for A, B, W and S as types of elements."""
    kinds = {
        "A": "!quant.uniform<i8:f32, 5.000000e-01:-30>",
        "B": "!quant.uniform<i8:f32, 2.500000e-01:7>",
        "W": "!quant.uniform<i8:f32:1, {5.000000e-01,1.250000e-01}>",
        "S": "!quant.uniform<i32:f32:1, {2.500000e-01,6.250000e-02}>",
    }
    for letter, kind in kinds.items():
        text = text.replace(f"x{letter}>", f"x{kind}>").replace(f"<{letter}>", f"<{kind}>")
    print(from_stablehlo(text).module)


# The sum of floats, divided by the scale, with the zero point, rounded; i8 saturates.
# CHECK-LABEL: func.func @main
# CHECK-SAME: %arg0: tensor<?xi8, #graph.shape<["arg0_0"]>>
# CHECK: graph.astype{{.*}} {dtype = f32}
# CHECK-NEXT: arith.constant dense<-3.000000e+01> : tensor<f32>
# CHECK-NEXT: graph.subtract
# CHECK-NEXT: arith.constant dense<5.000000e-01> : tensor<f32>
# CHECK-NEXT: graph.multiply
# CHECK: graph.add
# CHECK-NEXT: arith.constant dense<2.500000e-01> : tensor<f32>
# CHECK-NEXT: graph.divide
# CHECK-NEXT: arith.constant dense<7.000000e+00> : tensor<f32>
# CHECK-NEXT: graph.add
# CHECK-NEXT: graph.round
# CHECK-NEXT: graph.astype{{.*}} {dtype = i8}
# CHECK-NEXT: return
show(
    """
    func.func @main(%x: tensor<?xA>, %y: tensor<?xB>) -> tensor<?xB> {
      %0 = stablehlo.add %x, %y : (tensor<?xA>, tensor<?xB>) -> tensor<?xB>
      return %0 : tensor<?xB>
    }
    """
)

# Integers change position, and are compared, as they are.
# CHECK-LABEL: func.func @main
# CHECK-NOT: f32
# CHECK: graph.concat
# CHECK-NOT: f32
# CHECK: graph.maximum
# CHECK-NOT: f32
# CHECK: return
show(
    """
    func.func @main(%x: tensor<?x2xA>) -> tensor<?x2xA> {
      %0 = stablehlo.concatenate %x, %x, dim = 0
        : (tensor<?x2xA>, tensor<?x2xA>) -> tensor<?x2xA>
      %1 = stablehlo.maximum %0, %0 : tensor<?x2xA>
      return %1 : tensor<?x2xA>
    }
    """
)

# Products are of integers less zero points; here the scale of the result is that of the products.
# CHECK-LABEL: func.func @main
# CHECK: graph.astype{{.*}} {dtype = i32}
# CHECK-NEXT: arith.constant dense<-30> : tensor<i32>
# CHECK-NEXT: graph.subtract
# CHECK: graph.matmul
# CHECK-SAME: -> tensor<?x2xi32
# CHECK-NOT: graph.multiply
# CHECK: return
show(
    """
    func.func @main(%x: tensor<?x3xA>, %w: tensor<3x2xW>) -> tensor<?x2xS> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<?x3xA>, tensor<3x2xW>) -> tensor<?x2xS>
      return %0 : tensor<?x2xS>
    }
    """
)

# Sums have the bounds of their type when they are complete.
# CHECK-LABEL: func.func @main
# CHECK: graph.subtract{{.*}}i32
# CHECK: graph.sum
# CHECK-SAME: i64
# CHECK: graph.add
# CHECK: graph.maximum
# CHECK: graph.minimum
# CHECK-NEXT: graph.astype{{.*}} {dtype = i8}
# CHECK-NEXT: return
show(
    """
    func.func @main(%x: tensor<?x3xA>, %y: tensor<A>) -> tensor<3xA> {
      %0 = stablehlo.reduce(%x init: %y) applies stablehlo.add across dimensions = [0]
        : (tensor<?x3xA>, tensor<A>) -> tensor<3xA>
      return %0 : tensor<3xA>
    }
    """
)
