module {
  irdl.dialect @tir {
    irdl.attribute @pattern {
      %0 = irdl.base "#builtin.string" 
      irdl.parameters(kind: %0)
    }
  }
}

