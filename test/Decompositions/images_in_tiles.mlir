// An image of any size is resized three times: to its longest edge, to tiles, and to one as a whole.
// RUN: %PYTHON -c "from relax_mlir.llm.vision.config import Normalisation; from relax_mlir.llm.vision.idefics_config import TilePreprocessing; from relax_mlir.llm.vision.preprocessing import export_tiles; print(export_tiles(TilePreprocessing(24, 48, True, 1, Normalisation(1.0, (0.5,) * 3, (0.25,) * 3))))" | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<?x?x3xui8, #graph.shape<["h", "w", 3]>> {graph.name = "image"}
// CHECK-SAME: !graph.shape_value<["a", "b"]> {graph.name = "size"}
// CHECK-SAME: !graph.shape_value<["r", "c"]> {graph.name = "grid"}
// CHECK-SAME: !graph.shape_value<["n"]> {graph.name = "count"}
// CHECK-SAME: -> tensor<?x3x24x24xf32, #graph.shape<["n", 3, 24, 24]>>
// CHECK-COUNT-6: "graph.floor"
// CHECK: "graph.reshape"({{.*}}) {shape = #graph.shape<[3, "r", 24, "c", 24]>}
// CHECK: "graph.permute_dims"({{.*}}) {axes = array<i64: 1, 3, 0, 2, 4>}
// CHECK: "graph.concat"({{.*}} -> tensor<?x3x24x24xf32, #graph.shape<["c*r + 1", 3, 24, 24]>>
// CHECK: "graph.strided_slice"({{.*}} -> tensor<?x3x24x24xf32, #graph.shape<["n", 3, 24, 24]>>

// Features of squares of patches are joined.
// RUN: %PYTHON -c "from relax_mlir.llm.vision.config import Normalisation, TowerConfig; from relax_mlir.llm.vision.idefics_config import *; from relax_mlir.llm.vision.idefics_network import *; p = TilePreprocessing(24, 48, True, 1, Normalisation(1.0, (0.5,) * 3, (0.25,) * 3)); print(export_idefics_encoder(IdeficsEncoder(IdeficsVisionConfig(p, TowerConfig(16, 24, 1, 2, 24, 4, 1e-6, 'gelu'), 3, 12, 7))))" | FileCheck %s --check-prefix=ENCODER

// ENCODER-LABEL: func.func @main
// ENCODER-SAME: %arg0: tensor<?x3x24x24xf32, #graph.shape<["b", 3, 24, 24]>> {graph.name = "pixels"}
// ENCODER-SAME: -> tensor<?x12xf32, #graph.shape<["4*b", 12]>>
// ENCODER: "graph.nn_batched_attention"
// ENCODER: "graph.reshape"({{.*}}) {shape = #graph.shape<["b", 2, 3, 2, 3, 16]>}
// ENCODER: "graph.permute_dims"({{.*}}) {axes = array<i64: 0, 1, 3, 2, 4, 5>}
// ENCODER: "graph.reshape"({{.*}}) {shape = #graph.shape<["4*b", 144]>}
// ENCODER-NEXT: "graph.permute_dims"
// ENCODER-NEXT: "graph.matmul"
