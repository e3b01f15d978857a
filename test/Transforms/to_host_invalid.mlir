// RUN: relax-opt --relax-to-host --split-input-file --verify-diagnostics %s

// Casts through values of which nothing is known, where no pass has brought them together.

func.func @object(%x: tensor<?xf32>) -> tensor<?xf64> {
  // expected-error @below {{casts to '!graph.object', which host code does not hold}}
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> !graph.object
  %1 = "graph.match_cast"(%0) : (!graph.object) -> tensor<?xf64>
  return %1 : tensor<?xf64>
}

// -----

func.func @rank(%x: tensor<?xf32>) -> tensor<?x?xf32> {
  %0 = "graph.match_cast"(%x) : (tensor<?xf32>) -> tensor<*xf32>
  // expected-error @below {{casts a value of 1 dims to one of 2}}
  %1 = "graph.match_cast"(%0) : (tensor<*xf32>) -> tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}
