// RUN: relax-opt %s --pass-pipeline='relax-lift-workspace{kernels=false}' --pretty | FileCheck %s
// RUN: relax-opt %s --pass-pipeline='relax-lift-workspace,relax-verify,relax-lower-calls,relax-plan-memory,relax-check-memory-plan' --pretty | FileCheck %s --check-prefix=PLAN
// RUN: exits 1 relax-opt %s --pass-pipeline='relax-lower-calls' 2>&1 | FileCheck %s --check-prefix=BEFORE
// BEFORE: lift_workspace_library.mlir:[[#]]:8: error: 'graph.call_dps_library' op calls '@mine' with a workspace; run relax-lift-workspace before relax-lower-calls

!x = tensor<?xf32, #graph.shape<["n"]>>
#one = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>

"lib.function"() {sym_name = "mine", c_symbol = "mine", convention = "dlpack", libraries = ["libmine.so"]} : () -> ()

// What a library function asks for is results of its call, of bytes.
// CHECK-LABEL: func @main(
// CHECK-NEXT:    %0, %1, %2 = graph.call_dps_library @mine(%arg0) {graph.num_workspaces=2 : i64} : tensor<n x f32>, tensor<4*n x ui8>, tensor<32 x ui8>
// CHECK-NEXT:    %3 = graph.call_dps_library @mine(%0)
// A workspace has the memory that the next result has later.
// PLAN-LABEL: func @main(
// PLAN-NEXT:    %[[S:.*]] = graph.alloc_storage()
// PLAN:         %[[W:.*]] = graph.alloc_tensor(%[[S]]) {offset=#graph.shape<["[[AT:.*]]"]>} : tensor<4*n x ui8>
// PLAN:         graph.call_dps @mine(%arg0, %{{[0-9]+}}, %[[W]], %{{[0-9]+}}) {num_outs=3 : i64}
// PLAN-NEXT:    graph.alloc_tensor(%[[S]]) {offset=#graph.shape<["[[AT]]"]>} : tensor<n x f32>
func.func @main(%x: !x) -> !x {
  %0 = "graph.call_dps_library"(%x) {callee = @mine, graph.workspace = #graph.shape<["4*n", 32]>, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #out} : (!x) -> !x
  %1 = "graph.call_dps_library"(%0) {callee = @mine, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #out} : (!x) -> !x
  %2 = "graph.call_dps_library"(%1) {callee = @mine, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #out} : (!x) -> !x
  return %2 : !x
}

// In a branch the workspace is the branch's; a function that updates an operand, or has effects,
// is given one as well.
// CHECK-LABEL: func @branch(
// CHECK:         scf.if(%arg1)
// CHECK-NEXT:      graph.call_library_inplace @mine(%arg0) {graph.num_workspaces=1 : i64, inplace_indices=array<i64: 0, -1>} : tensor<n x f32>, tensor<n x ui8>
// CHECK:         graph.call_library @mine(%{{.*}}) {graph.num_workspaces=1 : i64} : tensor<n x f32>, tensor<0 x ui8>
func.func @branch(%x: !x, %c: i1) -> !x {
  %0 = scf.if %c -> !x {
    %1 = "graph.call_library_inplace"(%x) {callee = @mine, inplace_indices = array<i64: 0>, graph.workspace = #graph.shape<["n"]>, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #out} : (!x) -> !x
    scf.yield %1 : !x
  } else {
    scf.yield %x : !x
  }
  %2 = "graph.call_library"(%0) {callee = @mine, graph.workspace = #graph.shape<[0]>, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #out} : (!x) -> !x
  return %2 : !x
}

// CHECK-LABEL: func @negative_nothing_is_asked_for(
// CHECK-NOT:     ui8
func.func @negative_nothing_is_asked_for(%x: !x) -> !x {
  %0 = "graph.call_dps_library"(%x) {callee = @mine, graph.workspace = #graph.shape<[]>, sym_args = #graph.shape<[]>, operandSegmentSizes = #one, resultSegmentSizes = #out} : (!x) -> !x
  return %0 : !x
}
