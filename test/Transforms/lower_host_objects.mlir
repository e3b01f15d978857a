// RUN: relax-opt %s --split-input-file --relax-lower-host-objects | FileCheck %s
// RUN: relax-opt %s --split-input-file --relax-dead-code-elimination | FileCheck %s --check-prefix=AUTO

// Arguments and results are handles, and the declaration says which values of a call are.
// CHECK:       "lib.function"() {{.*}}sym_name = "next"}
// CHECK-NEXT:  "lib.function"() {{.*}}lib.host_operands = array<i64: 1>, lib.host_results = array<i64: 0>{{.*}}sym_name = "next_of_objects"
// CHECK-LABEL: func.func @main
// CHECK-SAME:    (%[[X:.*]]: tensor<f32>, %[[O:.*]]: tensor<i64> {graph.host_object, graph.name = "o"}) -> (tensor<i64>, tensor<f32>)
// CHECK-SAME:    graph.host_results = array<i64: 0>
// CHECK-NEXT:    %[[R:.*]] = "graph.call_library"(%[[X]], %[[O]]) {{.*}}callee = @next_of_objects{{.*}} : (tensor<f32>, tensor<i64>) -> tensor<i64>
// CHECK-NEXT:    return %[[R]], %[[X]] : tensor<i64>, tensor<f32>
// AUTO:        : (tensor<f32>, tensor<i64>) -> tensor<i64>
"lib.function"() {sym_name = "next", c_symbol = "next", convention = "dlpack", libraries = ["python"]} : () -> ()
func.func @main(%x: tensor<f32>, %o: !graph.host_object {graph.name = "o"}) -> (!graph.host_object, tensor<f32>) {
  %0 = "graph.call_library"(%x, %o) {callee = @next, sym_args = #graph.shape<[]>, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<f32>, !graph.host_object) -> !graph.host_object
  return %0, %x : !graph.host_object, tensor<f32>
}

// -----

// Loops and branches carry handles; a cast to the same type is none.
// CHECK-LABEL: func.func @carried
// CHECK:         %[[L:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (tensor<i64>)
// CHECK-NEXT:      %[[B:.*]] = scf.if %{{.*}} -> (tensor<i64>)
// CHECK-NEXT:        scf.yield %[[S]] : tensor<i64>
// CHECK:           scf.yield %[[B]] : tensor<i64>
// CHECK:         return %[[L]] : tensor<i64>
// AUTO-LABEL:  func.func @carried
// AUTO:          return %{{.*}} : tensor<i64>
func.func @carried(%o: !graph.host_object, %c: i1, %k: index) -> !graph.host_object {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %0 = scf.for %i = %zero to %k step %one iter_args(%s = %o) -> !graph.host_object {
    %1 = scf.if %c -> !graph.host_object {
      %2 = "graph.match_cast"(%s) : (!graph.host_object) -> !graph.host_object
      scf.yield %2 : !graph.host_object
    } else {
      scf.yield %o : !graph.host_object
    }
    scf.yield %1 : !graph.host_object
  }
  return %0 : !graph.host_object
}
