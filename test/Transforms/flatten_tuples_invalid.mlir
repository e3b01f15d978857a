// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-flatten-tuples

func.func @negative_argument(%t: !graph.any_tuple, %u: tuple<index>) -> !graph.object {
  // expected-error @below {{'graph.tuple_get' op has '!graph.any_tuple', which compiled code cannot hold: no one kind is known}}
  %0 = "graph.tuple_get"(%t) {index = 0 : i64} : (!graph.any_tuple) -> !graph.object
  return %0 : !graph.object
}

// -----

func.func @negative_cast(%t: !graph.any_tuple) -> tuple<index> {
  // expected-error @below {{'graph.match_cast' op has '!graph.any_tuple', which compiled code cannot hold: no one kind is known}}
  %0 = "graph.match_cast"(%t) : (!graph.any_tuple) -> tuple<index>
  return %0 : tuple<index>
}
