// Two tensors of unknown length: a cast names the first length and asserts it of the second.

!any = tensor<?xf32>
!k   = tensor<?xf32, #graph.shape<["k"]>>

func.func @main(%x: !any {graph.name = "x"}, %y: !any {graph.name = "y"}) -> !k {
  %0 = "graph.match_cast"(%x) : (!any) -> !k
  %1 = "graph.match_cast"(%y) : (!any) -> !k
  %2 = "graph.multiply"(%0, %1) : (!k, !k) -> !k
  return %2 : !k
}
