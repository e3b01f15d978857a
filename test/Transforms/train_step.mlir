// RUN: relax-opt %s --relax-train-step --pretty | FileCheck %s --check-prefix=SGD
// RUN: relax-opt %s --relax-train-step='optimizer=adam wrt=w' --pretty | FileCheck %s --check-prefix=ADAM
// RUN: relax-opt %s --relax-train-step | FileCheck %s --check-prefix=INOUT

// The function itself stays. Parameters are from num_inputs on.
// SGD-LABEL: func @main(
// SGD-LABEL: func @main_step(
// SGD-SAME:    %arg2: tensor<f64>) -> tensor<f32>, tensor<4 x f32> {graph.result_tree=[0, [1], []]}
// SGD:         %[[G:.*]] = graph.multiply(%{{.*}}, %arg0)
// SGD:         %[[RATE:.*]] = graph.astype(%arg2) {dtype=f32}
// SGD-NEXT:    %[[CHANGE:.*]] = graph.multiply(%[[G]], %[[RATE]])
// SGD-NEXT:    %[[W:.*]] = graph.subtract(%arg1, %[[CHANGE]])
// SGD-NEXT:    return %{{.*}}, %[[W]]

// INOUT: func.func @main_step({{.*}}"x"}, {{.*}}{graph.inout = 1 : i64, graph.name = "w"}, %arg2: tensor<f64> {graph.name = "rate"})

// ADAM-LABEL: func @main_step(
// ADAM-SAME:    %arg2: tensor<4 x f32>, %arg3: tensor<4 x f32>, %arg4: tensor<i64>, %arg5: tensor<f64>)
// ADAM:         %[[COUNT:.*]] = graph.add(%arg4,
// ADAM:         graph.power
// ADAM:         return %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[COUNT]]
func.func @main(%x: tensor<4xf32> {graph.name = "x"}, %w: tensor<4xf32> {graph.name = "w"}) -> tensor<f32> attributes {graph.num_inputs = 1 : i64} {
  %0 = "graph.multiply"(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "graph.sum"(%0) {axes = array<i64>, keepdims = false} : (tensor<4xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}
