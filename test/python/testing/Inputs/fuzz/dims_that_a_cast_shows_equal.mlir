// The host code of a function with two symbols calls one with a single symbol, behind a cast that
// shows that the two are equal. It was refused as not proved.
#in2 = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>
#out1 = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>
#n = #graph.shape<["n"]>
#m = #graph.shape<["m"]>
func.func @dims_that_a_cast_shows_equal(%x: tensor<?xf32, #n>, %y: tensor<?xf32, #n>) -> tensor<?xf32, #n> {
  %0 = "graph.call"(%x, %y) {callee = @outer, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<?xf32, #n>, tensor<?xf32, #n>) -> tensor<?xf32, #n>
  return %0 : tensor<?xf32, #n>
}
func.func private @outer(%x: tensor<?xf32, #n>, %y: tensor<?xf32, #m>) -> tensor<?xf32, #m> attributes {graph.noinline} {
  %0 = "graph.call"(%x, %y) {callee = @inner, operandSegmentSizes = #in2, resultSegmentSizes = #out1} : (tensor<?xf32, #n>, tensor<?xf32, #m>) -> tensor<?xf32, #m>
  return %0 : tensor<?xf32, #m>
}
func.func private @inner(%x: tensor<?xf32, #n>, %y: tensor<?xf32, #n>) -> tensor<?xf32, #n> attributes {graph.noinline} {
  %0 = "graph.add"(%x, %y) : (tensor<?xf32, #n>, tensor<?xf32, #n>) -> tensor<?xf32, #n>
  return %0 : tensor<?xf32, #n>
}
