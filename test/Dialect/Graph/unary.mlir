// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<4x8xf32>) {
  // CHECK: "graph.abs"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = "graph.abs"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.negative"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "graph.negative"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.sign"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "graph.sign"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.square"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "graph.square"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.acos"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = "graph.acos"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.acosh"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = "graph.acosh"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.asin"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = "graph.asin"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.asinh"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = "graph.asinh"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.atan"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %8 = "graph.atan"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.atanh"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %9 = "graph.atanh"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.ceil"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %10 = "graph.ceil"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.cos"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %11 = "graph.cos"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.cosh"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %12 = "graph.cosh"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.erf"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %13 = "graph.erf"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %14 = "graph.exp"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.expm1"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %15 = "graph.expm1"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.floor"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %16 = "graph.floor"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.log"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %17 = "graph.log"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.log10"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %18 = "graph.log10"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.log1p"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %19 = "graph.log1p"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.log2"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %20 = "graph.log2"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.reciprocal"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %21 = "graph.reciprocal"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.round"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %22 = "graph.round"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.rsqrt"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %23 = "graph.rsqrt"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.sigmoid"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %24 = "graph.sigmoid"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.sin"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %25 = "graph.sin"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.sinh"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %26 = "graph.sinh"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.sqrt"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %27 = "graph.sqrt"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.tan"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %28 = "graph.tan"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.tanh"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %29 = "graph.tanh"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.trunc"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %30 = "graph.trunc"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.isfinite"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xi1>
  %31 = "graph.isfinite"(%x) : (tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK: "graph.isinf"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xi1>
  %32 = "graph.isinf"(%x) : (tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK: "graph.isnan"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xi1>
  %33 = "graph.isnan"(%x) : (tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK: "graph.signbit"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xi1>
  %34 = "graph.signbit"(%x) : (tensor<4x8xf32>) -> tensor<4x8xi1>
  return
}

// CHECK-LABEL: func.func @element_types
func.func @element_types(%x: tensor<4xi32>, %y: tensor<4xf16>, %z: tensor<4xbf16>, %u: tensor<4xf64>, %v: tensor<4xi1>) {
  // CHECK: "graph.abs"(%{{.*}}) : (tensor<4xi32>) -> tensor<4xi32>
  %0 = "graph.abs"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.negative"(%{{.*}}) : (tensor<4xi32>) -> tensor<4xi32>
  %1 = "graph.negative"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.sign"(%{{.*}}) : (tensor<4xi32>) -> tensor<4xi32>
  %2 = "graph.sign"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.square"(%{{.*}}) : (tensor<4xi32>) -> tensor<4xi32>
  %3 = "graph.square"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<4xf16>) -> tensor<4xf16>
  %4 = "graph.exp"(%y) : (tensor<4xf16>) -> tensor<4xf16>
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<4xbf16>) -> tensor<4xbf16>
  %5 = "graph.exp"(%z) : (tensor<4xbf16>) -> tensor<4xbf16>
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<4xf64>) -> tensor<4xf64>
  %6 = "graph.exp"(%u) : (tensor<4xf64>) -> tensor<4xf64>
  // CHECK: "graph.bitwise_not"(%{{.*}}) : (tensor<4xi32>) -> tensor<4xi32>
  %7 = "graph.bitwise_not"(%x) : (tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.bitwise_not"(%{{.*}}) : (tensor<4xi1>) -> tensor<4xi1>
  %8 = "graph.bitwise_not"(%v) : (tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.logical_not"(%{{.*}}) : (tensor<4xi1>) -> tensor<4xi1>
  %9 = "graph.logical_not"(%v) : (tensor<4xi1>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>, %y: tensor<?x?xf32, #graph.shape<["n", "2*n + 1"]>>, %z: tensor<?xf32, #graph.shape<["n floordiv 4"]>>) {
  // CHECK: "graph.abs"(%{{.*}}) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  %0 = "graph.abs"(%x) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  %1 = "graph.exp"(%x) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  // CHECK: "graph.tanh"(%{{.*}}) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  %2 = "graph.tanh"(%x) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<?x?xf32, #graph.shape<["n", "2*n + 1"]>>) -> tensor<?x?xf32, #graph.shape<["n", "2*n + 1"]>>
  %3 = "graph.exp"(%y) : (tensor<?x?xf32, #graph.shape<["n", "2*n + 1"]>>) -> tensor<?x?xf32, #graph.shape<["n", "2*n + 1"]>>
  // CHECK: "graph.isnan"(%{{.*}}) : (tensor<?xf32, #graph.shape<["n floordiv 4"]>>) -> tensor<?xi1, #graph.shape<["n floordiv 4"]>>
  %4 = "graph.isnan"(%z) : (tensor<?xf32, #graph.shape<["n floordiv 4"]>>) -> tensor<?xi1, #graph.shape<["n floordiv 4"]>>
  return
}

// A result may be annotated finer or coarser than its operand.
// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<?x4xf32>, %y: tensor<*xf32>, %z: tensor<?x4xf32, #graph.shape<["n", 4]>>, %u: tensor<?x?xf32, #graph.shape<["n", "?"]>>) {
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  %0 = "graph.exp"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32>
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<*xf32>) -> tensor<*xf32>
  %1 = "graph.exp"(%y) : (tensor<*xf32>) -> tensor<*xf32>
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32>
  %2 = "graph.exp"(%z) : (tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32>
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<?x4xf32>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  %3 = "graph.exp"(%x) : (tensor<?x4xf32>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<*xf32>) -> tensor<4xf32>
  %4 = "graph.exp"(%y) : (tensor<*xf32>) -> tensor<4xf32>
  // CHECK: "graph.exp"(%{{.*}}) : (tensor<?x?xf32, #graph.shape<["n", "?"]>>) -> tensor<?x?xf32, #graph.shape<["n", "?"]>>
  %5 = "graph.exp"(%u) : (tensor<?x?xf32, #graph.shape<["n", "?"]>>) -> tensor<?x?xf32, #graph.shape<["n", "?"]>>
  return
}

// CHECK-LABEL: func.func @popcount
func.func @popcount(%x: tensor<9x4xi32>, %y: tensor<?xi8, #graph.shape<["n"]>>, %z: tensor<*xi64>) {
  // CHECK: "graph.popcount"(%{{.*}}) : (tensor<9x4xi32>) -> tensor<9x4xi32>
  %0 = "graph.popcount"(%x) : (tensor<9x4xi32>) -> tensor<9x4xi32>
  // CHECK: "graph.popcount"(%{{.*}}) : (tensor<?xi8, #graph.shape<["n"]>>) -> tensor<?xi8, #graph.shape<["n"]>>
  %1 = "graph.popcount"(%y) : (tensor<?xi8, #graph.shape<["n"]>>) -> tensor<?xi8, #graph.shape<["n"]>>
  // CHECK: "graph.popcount"(%{{.*}}) : (tensor<*xi64>) -> tensor<*xi64>
  %2 = "graph.popcount"(%z) : (tensor<*xi64>) -> tensor<*xi64>
  return
}
