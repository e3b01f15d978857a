// An image of any size is resized by products with matrices of weights, and nothing outside of what is cropped is made.
// RUN: %PYTHON -c "from relax_mlir.llm.vision.config import Preprocessing; from relax_mlir.llm.vision.preprocessing import export_preprocessing; print(export_preprocessing(Preprocessing(24, 16, 32, 2, 1 / 255, (0.5,) * 3, (0.25,) * 3)))" | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<?x?x3xui8, #graph.shape<["h", "w", 3]>>
// CHECK-SAME: !graph.shape_value<["a", "b"]>
// CHECK-SAME: -> tensor<3x24x16xf32>
// CHECK-SAME: graph.facts = ["1 <= h", "1 <= w", "1 <= a", "1 <= b"]
// The distance of each column of the image from the centres of those that are made, in f64.
// CHECK: "graph.arange"() {{.*}} -> tensor<16xf64>
// CHECK: "graph.abs"({{.*}}) : {{.*}} -> tensor<16x?xf64, #graph.shape<[16, "w"]>>
// CHECK: "graph.matmul"({{.*}}) : (tensor<?x?xf32, #graph.shape<["3*h", "w"]>>
// CHECK: "graph.floor"
// CHECK: "graph.matmul"({{.*}}) : (tensor<24x?xf32, #graph.shape<[24, "h"]>>
// CHECK: "graph.floor"
// CHECK: return {{.*}} : tensor<3x24x16xf32>
