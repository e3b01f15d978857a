module {
  irdl.dialect @tir {
    irdl.attribute @pattern {
      %0 = irdl.base "#builtin.string" 
      irdl.parameters(kind: %0)
    }
    irdl.operation @node_id {
      %0 = irdl.base "#builtin.integer" 
      %1 = irdl.base "#builtin.integer" 
      irdl.attributes {"level" = %0, "dim" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @grid_size {
      %0 = irdl.base "#builtin.integer" 
      %1 = irdl.base "#builtin.integer" 
      irdl.attributes {"level" = %0, "dim" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @global_id {
      %0 = irdl.base "#builtin.integer" 
      %1 = irdl.base "#builtin.integer" 
      irdl.attributes {"level" = %0, "dim" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @global_size {
      %0 = irdl.base "#builtin.integer" 
      %1 = irdl.base "#builtin.integer" 
      irdl.attributes {"level" = %0, "dim" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @atomic {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.base "!builtin.index" 
      irdl.operands(value: %0, dest: %1, indices: variadic %2)
      %3 = irdl.base "#builtin.string" 
      irdl.attributes {"kind" = %3}
      %4 = irdl.any
      irdl.results(result: %4)
    }
    irdl.operation @barrier {
      %0 = irdl.any
      irdl.operands(before: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
  }
}

