// An image of any size is resized by products with matrices of weights, and nothing outside of what is cropped is made.
// RUN: %PYTHON -c "from relax_mlir.llm.vision.config import Normalisation, Preprocessing; from relax_mlir.llm.vision.preprocessing import export_preprocessing; print(export_preprocessing(Preprocessing(24, 16, 32, 2, Normalisation(1 / 255, (0.5,) * 3, (0.25,) * 3))))" | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<?x?x3xui8, #graph.shape<["h", "w", 3]>>
// CHECK-SAME: !graph.shape_value<["a", "b"]>
// CHECK-SAME: -> tensor<1x3x24x16xf32>
// CHECK-SAME: graph.facts = ["1 <= h", "1 <= w", "1 <= a", "1 <= b"]
// The distance of each column of the image from the centres of those that are made, in f64.
// CHECK: "graph.arange"() {{.*}} -> tensor<16xf64>
// CHECK: "graph.abs"({{.*}}) : {{.*}} -> tensor<16x?xf64, #graph.shape<[16, "w"]>>
// CHECK: "graph.matmul"({{.*}}) : (tensor<?x?xf32, #graph.shape<["3*h", "w"]>>
// CHECK: "graph.floor"
// CHECK: "graph.matmul"({{.*}}) : (tensor<24x?xf32, #graph.shape<[24, "h"]>>
// CHECK: "graph.floor"
// CHECK: return {{.*}} : tensor<1x3x24x16xf32>

// A decoder takes rows of images, at least one, and for each token the row that replaces it, or -1.
// RUN: %PYTHON -c "from relax_mlir.llm.modules.config import DecoderConfig, Rope; from relax_mlir.llm.modules.decoder import Transformer, export; print(export(Transformer(DecoderConfig(40, 16, 24, 1, 2, 2, 8, 1e-5, 64, False, ropes=(Rope(1e4, 8),), image_id=7))))" | FileCheck %s --check-prefix=DECODER

// DECODER-LABEL: func.func @main
// DECODER-SAME: %[[IMAGES:arg[0-9]+]]: tensor<?x16xf32, #graph.shape<["k", 16]>> {graph.name = "images"}
// DECODER-SAME: %[[ROWS:arg[0-9]+]]: tensor<?xi32, #graph.shape<["n"]>> {graph.name = "image_rows"}
// DECODER-SAME: graph.facts = ["m + n <= c", "r <= n", "1 <= k"]
// DECODER: %[[IS_IMAGE:.*]] = "graph.greater_equal"(%[[ROWS]],
// DECODER: %[[TAKEN:.*]] = "graph.take"(%[[IMAGES]], %[[ROWS]]) {axis = 0 : i64}
// DECODER: %[[COLUMN:.*]] = "graph.expand_dims"(%[[IS_IMAGE]])
// DECODER: "graph.where"(%[[COLUMN]], %[[TAKEN]],
