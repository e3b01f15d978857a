module {
  irdl.dialect @lib {
    irdl.operation @function {
      %0 = irdl.base "#builtin.string" 
      %1 = irdl.base "#builtin.string" 
      %2 = irdl.base "#builtin.string" 
      %3 = irdl.base "#builtin.array" 
      irdl.attributes {"sym_name" = %0, "c_symbol" = %1, "convention" = %2, "libraries" = %3}
    }
  }
}

