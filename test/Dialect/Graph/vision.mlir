// RUN: relax-opt %s --relax-verify | relax-opt --relax-verify | FileCheck %s

!f = tensor<f32>

// CHECK-LABEL: func.func @forms
func.func @forms(%b: tensor<2x7x4xf32>, %s: tensor<2x3x7xf32>, %l: tensor<i64>, %t: !f, %n: tensor<?x?x4xf32, #graph.shape<["b", "n", 4]>>, %c: tensor<?x5x?xf32, #graph.shape<["b", 5, "n"]>>, %u: tensor<*xf32>) {
  // CHECK: "graph.vision_nms"(%{{.*}}) {center = false} : (tensor<2x7x4xf32>, tensor<2x3x7xf32>, tensor<i64>, tensor<f32>, tensor<f32>) -> tensor<2x3x7xi64>
  %0 = "graph.vision_nms"(%b, %s, %l, %t, %t) {center = false} : (tensor<2x7x4xf32>, tensor<2x3x7xf32>, tensor<i64>, !f, !f) -> tensor<2x3x7xi64>
  // CHECK: "graph.vision_nms"(%{{.*}}) {center = true} : {{.*}} -> tensor<?x5x?xi64, #graph.shape<["b", 5, "n"]>>
  %1 = "graph.vision_nms"(%n, %c, %l, %t, %t) {center = true} : (tensor<?x?x4xf32, #graph.shape<["b", "n", 4]>>, tensor<?x5x?xf32, #graph.shape<["b", 5, "n"]>>, tensor<i64>, !f, !f) -> tensor<?x5x?xi64, #graph.shape<["b", 5, "n"]>>
  // CHECK: "graph.vision_nms"(%{{.*}}) {center = true} : {{.*}} -> tensor<?x?x?xi64>
  %2 = "graph.vision_nms"(%u, %u, %l, %t, %t) {center = true} : (tensor<*xf32>, tensor<*xf32>, tensor<i64>, !f, !f) -> tensor<?x?x?xi64>
  return
}
