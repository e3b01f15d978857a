// Bytecode goes through a tool that does not know the dialects, and comes back the same.
// RUN: relax-opt %s --emit-bytecode -o %t.bc
// RUN: bindings-opt --allow-unregistered-dialect %t.bc | FileCheck %s
// RUN: bindings-opt --allow-unregistered-dialect --emit-bytecode %t.bc -o %t.again
// RUN: relax-opt %t.again --relax-verify | FileCheck %s

!x = tensor<?xf32, #graph.shape<["n"]>>
// CHECK: func.func @main(%{{.*}}: tensor<?xf32, #graph.shape<["n"]>>) -> tensor<?xf32, #graph.shape<["n"]>>
func.func @main(%x: !x) -> !x {
  // CHECK: "graph.add"(%{{.*}}, %{{.*}}) : (tensor<?xf32, #graph.shape<["n"]>>, tensor<?xf32, #graph.shape<["n"]>>)
  %0 = "graph.add"(%x, %x) : (!x, !x) -> !x
  return %0 : !x
}
