// An image of any size becomes patches, those of a unit of 2 x 2 together.
// RUN: %PYTHON -c "from relax_mlir.llm.vision.config import Normalisation; from relax_mlir.llm.vision.qwen_config import PatchPreprocessing, QwenVisionConfig; p = PatchPreprocessing(3, 2, 9, 99, 3, Normalisation(1.0, (0.5,) * 3, (0.25,) * 3)); from relax_mlir.llm.vision.preprocessing import export_patches; print(export_patches(p))" | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: tensor<?x?x3xui8, #graph.shape<["h", "w", 3]>>
// CHECK-SAME: !graph.shape_value<["a", "b"]>
// CHECK-SAME: -> tensor<?x27xf32, #graph.shape<["4*a*b", 27]>>
// CHECK: "graph.reshape"({{.*}}) {shape = #graph.shape<[3, "a", 2, 3, "b", 2, 3]>}
// CHECK: "graph.permute_dims"({{.*}}) {axes = array<i64: 1, 4, 2, 5, 0, 3, 6>}
// CHECK: return {{.*}} #graph.shape<["4*a*b", 27]>>

// Its rows are those of one function for all grids: frames of filters are added, patches rotate by row and column.
// RUN: %PYTHON -c "from relax_mlir.llm.vision.config import Normalisation; from relax_mlir.llm.vision.qwen_config import PatchPreprocessing, QwenVisionConfig; p = PatchPreprocessing(3, 2, 9, 99, 3, Normalisation(1.0, (0.5,) * 3, (0.25,) * 3)); from relax_mlir.llm.vision.qwen_network import *; print(export_qwen_encoder(QwenEncoder(QwenVisionConfig(p, 16, 24, 1, 2, 2, 'quick_gelu', 12, 7))))" | FileCheck %s --check-prefix=WHOLE

// WHOLE-LABEL: func.func @main
// WHOLE-SAME: %arg0: tensor<?x27xf32, #graph.shape<["4*a*b", 27]>> {graph.name = "patches"}
// WHOLE-SAME: %arg1: !graph.shape_value<["a", "b"]> {graph.name = "grid"}
// WHOLE-SAME: %[[FILTERS:arg[0-9]+]]: tensor<16x3x2x3x3xf32>
// WHOLE-SAME: -> tensor<?x12xf32, #graph.shape<["a*b", 12]>>
// WHOLE: "graph.sum"(%[[FILTERS]]) {axes = array<i64: 2>
// WHOLE: "graph.concat"({{.*}}) {axis = 1 : i64{{.*}} -> tensor<?x4xf32, #graph.shape<["4*a*b", 4]>>
// WHOLE-COUNT-2: "graph.nn_rotary"
// WHOLE: "graph.nn_batched_attention"({{.*}}, {{.*}} : (tensor<1x?x2x8xf32, #graph.shape<[1, "4*a*b", 2, 8]>>
// WHOLE: "graph.reshape"({{.*}}) {shape = #graph.shape<["a*b", 64]>}

// With windows, patches attend to those of their own: units are taken into slots, and back.
// RUN: %PYTHON -c "from relax_mlir.llm.vision.config import Normalisation; from relax_mlir.llm.vision.qwen_config import PatchPreprocessing, QwenVisionConfig; p = PatchPreprocessing(3, 2, 9, 99, 3, Normalisation(1.0, (0.5,) * 3, (0.25,) * 3)); from relax_mlir.llm.vision.qwen_network import *; print(export_qwen_encoder(QwenEncoder(QwenVisionConfig(p, 16, 24, 2, 2, 2, 'silu', 12, 7, window=3, full_layers=frozenset([1])))))" | FileCheck %s --check-prefix=WINDOWS

// WINDOWS-LABEL: func.func @main
// WINDOWS-SAME: %[[UNITS:arg[0-9]+]]: tensor<?x9xi32, #graph.shape<["v", 9]>> {graph.name = "units"}
// WINDOWS-SAME: %[[SLOTS:arg[0-9]+]]: tensor<?xi32, #graph.shape<["a*b"]>> {graph.name = "slots"}
// WINDOWS-COUNT-3: "graph.take"({{.*}}, %[[UNITS]]) {axis = 0 : i64}
// WINDOWS: "graph.nn_batched_attention"({{.*}}, {{.*}} : (tensor<?x36x2x8xf32, #graph.shape<["v", 36, 2, 8]>>
// WINDOWS: "graph.take"({{.*}}, %[[SLOTS]]) {axis = 0 : i64}
// WINDOWS-NOT: "graph.take"
// WINDOWS: "graph.nn_batched_attention"({{.*}}, {{.*}} : (tensor<1x?x2x8xf32, #graph.shape<[1, "4*a*b", 2, 8]>>

// A decoder with sections takes three coordinates of each token.
// RUN: %PYTHON -c "from relax_mlir.llm.modules.config import DecoderConfig, Rope; from relax_mlir.llm.modules.decoder import Transformer, export; print(export(Transformer(DecoderConfig(40, 16, 24, 1, 2, 2, 8, 1e-5, 64, False, ropes=(Rope(1e4, 8, sections=(2, 1, 1)),), image_id=7))))" | FileCheck %s --check-prefix=DECODER

// DECODER-LABEL: func.func @main
// DECODER-SAME: %[[COORDINATES:arg[0-9]+]]: tensor<?x3xi32, #graph.shape<["n", 3]>> {graph.name = "coordinates"}
// DECODER: %[[FREQUENCY:.*]] = arith.constant dense<[1.000000e+00, 1.000000e-01, 0.00999999977, 1.000000e-03]>
// DECODER: %[[X:.*]] = "graph.astype"(%[[COORDINATES]])
// DECODER: "graph.strided_slice"(%[[X]]) {axes = array<i64: 1>, begin = #graph.shape<[0]>, end = #graph.shape<[1]>
// DECODER: %[[TIMES:.*]] = arith.constant dense<[1.000000e+00, 1.000000e+00, 0.000000e+00, 0.000000e+00]>
// DECODER: "graph.multiply"(%[[FREQUENCY]], %[[TIMES]])
// DECODER: "graph.strided_slice"(%[[X]]) {axes = array<i64: 1>, begin = #graph.shape<[1]>, end = #graph.shape<[2]>
// DECODER: "graph.strided_slice"(%[[X]]) {axes = array<i64: 1>, begin = #graph.shape<[2]>, end = #graph.shape<[3]>
// DECODER: "graph.nn_rotary"
