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
  }
}

