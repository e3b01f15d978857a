// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

// CHECK-LABEL: func.func @static
func.func @static(%x: tensor<4x8xf32>) {
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = "graph.add"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.floor_divide"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "graph.floor_divide"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.maximum"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "graph.maximum"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.minimum"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "graph.minimum"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.multiply"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = "graph.multiply"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.power"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = "graph.power"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.remainder"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = "graph.remainder"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.subtract"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = "graph.subtract"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.atan2"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %8 = "graph.atan2"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.copysign"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %9 = "graph.copysign"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.divide"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %10 = "graph.divide"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.hypot"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %11 = "graph.hypot"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.logaddexp"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %12 = "graph.logaddexp"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.equal"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %13 = "graph.equal"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK: "graph.greater"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %14 = "graph.greater"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK: "graph.greater_equal"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %15 = "graph.greater_equal"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK: "graph.less"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %16 = "graph.less"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK: "graph.less_equal"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %17 = "graph.less_equal"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  // CHECK: "graph.not_equal"(%{{.*}}, %{{.*}}) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  %18 = "graph.not_equal"(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
  return
}

// CHECK-LABEL: func.func @element_types
func.func @element_types(%x: tensor<4xi32>, %y: tensor<4xi1>) {
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %0 = "graph.add"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.floor_divide"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %1 = "graph.floor_divide"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.maximum"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %2 = "graph.maximum"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.minimum"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %3 = "graph.minimum"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.multiply"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %4 = "graph.multiply"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.power"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %5 = "graph.power"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.remainder"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %6 = "graph.remainder"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.subtract"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %7 = "graph.subtract"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.bitwise_and"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %8 = "graph.bitwise_and"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.bitwise_or"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %9 = "graph.bitwise_or"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.bitwise_xor"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %10 = "graph.bitwise_xor"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.left_shift"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %11 = "graph.left_shift"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.right_shift"(%{{.*}}, %{{.*}}) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %12 = "graph.right_shift"(%x, %x) : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: "graph.bitwise_and"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %13 = "graph.bitwise_and"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.bitwise_or"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %14 = "graph.bitwise_or"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.bitwise_xor"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %15 = "graph.bitwise_xor"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.logical_and"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %16 = "graph.logical_and"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.logical_or"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %17 = "graph.logical_or"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.logical_xor"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %18 = "graph.logical_xor"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.equal"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %19 = "graph.equal"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.greater"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %20 = "graph.greater"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.greater_equal"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %21 = "graph.greater_equal"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.less"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %22 = "graph.less"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.less_equal"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %23 = "graph.less_equal"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  // CHECK: "graph.not_equal"(%{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %24 = "graph.not_equal"(%y, %y) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// CHECK-LABEL: func.func @broadcast
func.func @broadcast(%x: tensor<4x1xf32>, %y: tensor<8xf32>, %z: tensor<f32>, %u: tensor<2x3xf32>, %v: tensor<2x1x3x1xf32>, %w: tensor<5x1x7xf32>, %a: tensor<1xf32>, %b: tensor<0xf32>) {
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<4x1xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %0 = "graph.add"(%x, %y) : (tensor<4x1xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = "graph.add"(%z, %u) : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<2x1x3x1xf32>, tensor<5x1x7xf32>) -> tensor<2x5x3x7xf32>
  %2 = "graph.add"(%v, %w) : (tensor<2x1x3x1xf32>, tensor<5x1x7xf32>) -> tensor<2x5x3x7xf32>
  // CHECK: "graph.less"(%{{.*}}, %{{.*}}) : (tensor<1xf32>, tensor<0xf32>) -> tensor<0xi1>
  %3 = "graph.less"(%a, %b) : (tensor<1xf32>, tensor<0xf32>) -> tensor<0xi1>
  return
}

// CHECK-LABEL: func.func @symbolic
func.func @symbolic(%x: tensor<?x4xf32, #graph.shape<["n", 4]>>, %y: tensor<?x1xf32, #graph.shape<["n", 1]>>, %z: tensor<?xf32, #graph.shape<["m"]>>, %u: tensor<?xf32, #graph.shape<["2*n"]>>, %v: tensor<f32>, %w: tensor<4xf32>) {
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  %0 = "graph.add"(%x, %x) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32, #graph.shape<["n", 4]>>
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<?x1xf32, #graph.shape<["n", 1]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  %1 = "graph.add"(%y, %z) : (tensor<?x1xf32, #graph.shape<["n", 1]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?x?xf32, #graph.shape<["n", "m"]>>
  // CHECK: "graph.multiply"(%{{.*}}, %{{.*}}) : (tensor<?xf32, #graph.shape<["2*n"]>>, tensor<f32>) -> tensor<?xf32, #graph.shape<["2*n"]>>
  %2 = "graph.multiply"(%u, %v) : (tensor<?xf32, #graph.shape<["2*n"]>>, tensor<f32>) -> tensor<?xf32, #graph.shape<["2*n"]>>
  // CHECK: "graph.equal"(%{{.*}}, %{{.*}}) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<4xf32>) -> tensor<?x4xi1, #graph.shape<["n", 4]>>
  %3 = "graph.equal"(%x, %w) : (tensor<?x4xf32, #graph.shape<["n", 4]>>, tensor<4xf32>) -> tensor<?x4xi1, #graph.shape<["n", 4]>>
  return
}

// Two dims that may be equal give one that is not known, unless one of them is static.
// CHECK-LABEL: func.func @coarse
func.func @coarse(%x: tensor<?xf32, #graph.shape<["n"]>>, %y: tensor<?xf32, #graph.shape<["m"]>>, %z: tensor<4xf32>, %u: tensor<?x4xf32>, %v: tensor<?x4xf32, #graph.shape<["n", 4]>>, %w: tensor<*xf32>) {
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32>
  %0 = "graph.add"(%x, %y) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32>
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.add"(%x, %z) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<?x4xf32>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32>
  %2 = "graph.add"(%u, %v) : (tensor<?x4xf32>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<?x4xf32>
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<*xf32>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<*xf32>
  %3 = "graph.add"(%w, %v) : (tensor<*xf32>, tensor<?x4xf32, #graph.shape<["n", 4]>>) -> tensor<*xf32>
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  %4 = "graph.add"(%x, %y) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["m"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
  return
}

// CHECK-LABEL: func.func @logical_right_shift
func.func @logical_right_shift(%x: tensor<9x4xi32>, %y: tensor<4xi32>, %z: tensor<?x4xi32, #graph.shape<["n", 4]>>) {
  // CHECK: "graph.logical_right_shift"(%{{.*}}, %{{.*}}) : (tensor<9x4xi32>, tensor<4xi32>) -> tensor<9x4xi32>
  %0 = "graph.logical_right_shift"(%x, %y) : (tensor<9x4xi32>, tensor<4xi32>) -> tensor<9x4xi32>
  // CHECK: "graph.logical_right_shift"(%{{.*}}, %{{.*}}) : (tensor<?x4xi32, #graph.shape<["n", 4]>>, tensor<4xi32>) -> tensor<?x4xi32, #graph.shape<["n", 4]>>
  %1 = "graph.logical_right_shift"(%z, %y) : (tensor<?x4xi32, #graph.shape<["n", 4]>>, tensor<4xi32>) -> tensor<?x4xi32, #graph.shape<["n", 4]>>
  return
}
