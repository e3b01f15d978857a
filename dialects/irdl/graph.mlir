module {
  irdl.dialect @graph {
    irdl.type @shape_value {
      %0 = irdl.base "#builtin.array" 
      irdl.parameters(dims: %0)
    }
    irdl.type @object {
      irdl.parameters()
    }
    irdl.type @any_tuple {
      irdl.parameters()
    }
    irdl.type @callable {
      irdl.parameters()
    }
    irdl.type @any_element {
      irdl.parameters()
    }
    irdl.type @host_object {
      irdl.parameters()
    }
    irdl.type @storage {
      irdl.parameters()
    }
    irdl.attribute @shape {
      %0 = irdl.base "#builtin.array" 
      irdl.parameters(dims: %0)
    }
    irdl.operation @nn_rotary {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      irdl.operands(input: %0, cos: %1, sin: %2)
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @nn_kv_append {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      irdl.operands(key_cache: %0, value_cache: %1, key: %2, value: %3)
      %4 = irdl.base @graph::@shape 
      irdl.attributes {"position" = %4}
      %5 = irdl.any
      %6 = irdl.any
      irdl.results(new_key_cache: %5, new_value_cache: %6)
    }
    irdl.operation @nn_attention {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      irdl.operands(query: %0, key_cache: %1, value_cache: %2)
      %3 = irdl.base @graph::@shape 
      %4 = irdl.base "#builtin.float" 
      %5 = irdl.base "#builtin.integer" 
      irdl.attributes {"position" = %3, "scale" = %4, "causal" = %5}
      %6 = irdl.any
      irdl.results(result: %6)
    }
    irdl.operation @nn_batched_attention {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      irdl.operands(query: %0, key: %1, value: %2, mask: optional %3)
      %4 = irdl.base "#builtin.float" 
      %5 = irdl.base "#builtin.integer" 
      irdl.attributes {"scale" = %4, "causal" = %5}
      %6 = irdl.any
      irdl.results(result: %6)
    }
    irdl.operation @add {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @floor_divide {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @maximum {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @minimum {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @multiply {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @power {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @remainder {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @subtract {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @atan2 {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @copysign {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @divide {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @hypot {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @logaddexp {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @bitwise_and {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @bitwise_or {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @bitwise_xor {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @logical_and {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @logical_or {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @logical_xor {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @equal {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @greater {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @greater_equal {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @less {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @less_equal {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @not_equal {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @left_shift {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @logical_right_shift {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @right_shift {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @bitcast {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.type" 
      irdl.attributes {"dtype" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @philox {
      %0 = irdl.any
      irdl.operands(state: %0)
      %1 = irdl.base @graph::@shape 
      irdl.attributes {"blocks" = %1}
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      irdl.results(first: %2, second: %3, third: %4, fourth: %5)
    }
    irdl.operation @call_tir {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.symbol_ref" 
      %33 = irdl.base @graph::@shape 
      irdl.attributes {"callee" = %32, "sym_args" = %33}
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      %41 = irdl.any
      irdl.results(out0: optional %34, out1: optional %35, out2: optional %36, out3: optional %37, out4: optional %38, out5: optional %39, out6: optional %40, out7: optional %41)
    }
    irdl.operation @call_tir_inplace {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.symbol_ref" 
      %33 = irdl.base "#builtin.dense_array" 
      %34 = irdl.base @graph::@shape 
      irdl.attributes {"callee" = %32, "inplace_indices" = %33, "sym_args" = %34}
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      %41 = irdl.any
      %42 = irdl.any
      irdl.results(out0: optional %35, out1: optional %36, out2: optional %37, out3: optional %38, out4: optional %39, out5: optional %40, out6: optional %41, out7: optional %42)
    }
    irdl.operation @call_dps_library {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.symbol_ref" 
      %33 = irdl.base @graph::@shape 
      irdl.attributes {"callee" = %32, "sym_args" = %33}
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      %41 = irdl.any
      irdl.results(out0: optional %34, out1: optional %35, out2: optional %36, out3: optional %37, out4: optional %38, out5: optional %39, out6: optional %40, out7: optional %41)
    }
    irdl.operation @call_library {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.symbol_ref" 
      %33 = irdl.base @graph::@shape 
      irdl.attributes {"callee" = %32, "sym_args" = %33}
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      %41 = irdl.any
      irdl.results(out0: optional %34, out1: optional %35, out2: optional %36, out3: optional %37, out4: optional %38, out5: optional %39, out6: optional %40, out7: optional %41)
    }
    irdl.operation @call_library_inplace {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.symbol_ref" 
      %33 = irdl.base "#builtin.dense_array" 
      %34 = irdl.base @graph::@shape 
      irdl.attributes {"callee" = %32, "inplace_indices" = %33, "sym_args" = %34}
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      %41 = irdl.any
      %42 = irdl.any
      irdl.results(out0: optional %35, out1: optional %36, out2: optional %37, out3: optional %38, out4: optional %39, out5: optional %40, out6: optional %41, out7: optional %42)
    }
    irdl.operation @call {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.symbol_ref" 
      irdl.attributes {"callee" = %32}
      %33 = irdl.any
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      irdl.results(out0: optional %33, out1: optional %34, out2: optional %35, out3: optional %36, out4: optional %37, out5: optional %38, out6: optional %39, out7: optional %40)
    }
    irdl.operation @make_closure {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.symbol_ref" 
      irdl.attributes {"callee" = %32}
      %33 = irdl.any
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      irdl.results(out0: optional %33, out1: optional %34, out2: optional %35, out3: optional %36, out4: optional %37, out5: optional %38, out6: optional %39, out7: optional %40)
    }
    irdl.operation @invoke_closure {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.any
      %33 = irdl.any
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      irdl.results(out0: optional %32, out1: optional %33, out2: optional %34, out3: optional %35, out4: optional %36, out5: optional %37, out6: optional %38, out7: optional %39)
    }
    irdl.operation @nn_conv2d {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(input: %0, weight: %1)
      %2 = irdl.base "#builtin.dense_array" 
      %3 = irdl.base "#builtin.dense_array" 
      %4 = irdl.base "#builtin.dense_array" 
      %5 = irdl.base "#builtin.integer" 
      irdl.attributes {"strides" = %2, "padding" = %3, "dilation" = %4, "groups" = %5}
      %6 = irdl.any
      irdl.results(result: %6)
    }
    irdl.operation @nn_max_pool2d {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.dense_array" 
      %3 = irdl.base "#builtin.dense_array" 
      %4 = irdl.base "#builtin.dense_array" 
      irdl.attributes {"window" = %1, "strides" = %2, "padding" = %3, "dilation" = %4}
      %5 = irdl.any
      irdl.results(result: %5)
    }
    irdl.operation @nn_sum_pool2d {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.dense_array" 
      %3 = irdl.base "#builtin.dense_array" 
      %4 = irdl.base "#builtin.dense_array" 
      irdl.attributes {"window" = %1, "strides" = %2, "padding" = %3, "dilation" = %4}
      %5 = irdl.any
      irdl.results(result: %5)
    }
    irdl.operation @permute_dims {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      irdl.attributes {"axes" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @reshape {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base @graph::@shape 
      irdl.attributes {"shape" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @expand_dims {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      irdl.attributes {"axes" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @squeeze {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      irdl.attributes {"axes" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @broadcast_to {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base @graph::@shape 
      irdl.attributes {"shape" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @concat {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %32}
      %33 = irdl.any
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      irdl.results(out0: optional %33, out1: optional %34, out2: optional %35, out3: optional %36, out4: optional %37, out5: optional %38, out6: optional %39, out7: optional %40)
    }
    irdl.operation @split {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base @graph::@shape 
      %33 = irdl.base "#builtin.integer" 
      irdl.attributes {"sizes" = %32, "axis" = %33}
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      %41 = irdl.any
      irdl.results(out0: optional %34, out1: optional %35, out2: optional %36, out3: optional %37, out4: optional %38, out5: optional %39, out6: optional %40, out7: optional %41)
    }
    irdl.operation @full {
      %0 = irdl.any
      irdl.operands(fill_value: %0)
      %1 = irdl.base @graph::@shape 
      irdl.attributes {"shape" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @arange {
      %0 = irdl.base @graph::@shape 
      %1 = irdl.base "#builtin.type" 
      irdl.attributes {"bounds" = %0, "dtype" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @one_hot {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      irdl.operands(indices: %0, on: %1, off: %2)
      %3 = irdl.base @graph::@shape 
      %4 = irdl.base "#builtin.integer" 
      irdl.attributes {"depth" = %3, "axis" = %4}
      %5 = irdl.any
      irdl.results(result: %5)
    }
    irdl.operation @eye {
      %0 = irdl.base @graph::@shape 
      %1 = irdl.base "#builtin.integer" 
      %2 = irdl.base "#builtin.type" 
      irdl.attributes {"shape" = %0, "k" = %1, "dtype" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @tril {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.integer" 
      irdl.attributes {"k" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @triu {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.integer" 
      irdl.attributes {"k" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @nonzero {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @unique {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axes" = %1, "sorted" = %2}
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      irdl.results(values: %3, indices: %4, inverse: %5, counts: %6)
    }
    irdl.operation @repeat_interleave {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(input: %0, repeats: %1)
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @range_of {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      irdl.operands(start: %0, stop: %1, step: %2)
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @astype {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.type" 
      irdl.attributes {"dtype" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @to_device {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.string" 
      irdl.attributes {"device" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @hint_on_device {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.string" 
      irdl.attributes {"device" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @gather_elements {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(input: %0, indices: %1)
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @gather_nd {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(input: %0, indices: %1)
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"batch_dims" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @index_tensor {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.dense_array" 
      irdl.attributes {"axes" = %32}
      %33 = irdl.any
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      irdl.results(out0: optional %33, out1: optional %34, out2: optional %35, out3: optional %36, out4: optional %37, out5: optional %38, out6: optional %39, out7: optional %40)
    }
    irdl.operation @take {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(input: %0, indices: %1)
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @strided_slice {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base @graph::@shape 
      %3 = irdl.base @graph::@shape 
      %4 = irdl.base "#builtin.dense_array" 
      irdl.attributes {"axes" = %1, "begin" = %2, "end" = %3, "strides" = %4}
      %5 = irdl.any
      irdl.results(result: %5)
    }
    irdl.operation @dynamic_slice {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(input: %0, starts: %1)
      %2 = irdl.base @graph::@shape 
      irdl.attributes {"sizes" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @matmul {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(lhs: %0, rhs: %1)
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @alloc_storage {
      %0 = irdl.base @graph::@shape 
      irdl.attributes {"size" = %0}
      %1 = irdl.base @graph::@storage 
      irdl.results(result: %1)
    }
    irdl.operation @alloc_tensor {
      %0 = irdl.base @graph::@storage 
      irdl.operands(storage: optional %0)
      %1 = irdl.base @graph::@shape 
      irdl.attributes {"offset" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @view {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @copy {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(input: %0, destination: %1)
    }
    irdl.operation @keep {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @store {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.base "!builtin.index" 
      irdl.operands(value: %0, destination: %1, indices: variadic %2)
    }
    irdl.operation @call_dps {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.symbol_ref" 
      %33 = irdl.base "#builtin.integer" 
      %34 = irdl.base @graph::@shape 
      %35 = irdl.base "#builtin.dense_array" 
      irdl.attributes {"callee" = %32, "num_outs" = %33, "sym_args" = %34, "updates" = %35}
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      %41 = irdl.any
      %42 = irdl.any
      %43 = irdl.any
      irdl.results(out0: optional %36, out1: optional %37, out2: optional %38, out3: optional %39, out4: optional %40, out5: optional %41, out6: optional %42, out7: optional %43)
    }
    irdl.operation @print {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.string" 
      irdl.attributes {"format" = %32}
      %33 = irdl.any
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      irdl.results(out0: optional %33, out1: optional %34, out2: optional %35, out3: optional %36, out4: optional %37, out5: optional %38, out6: optional %39, out7: optional %40)
    }
    irdl.operation @assert {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.string" 
      irdl.attributes {"format" = %32}
      %33 = irdl.any
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      irdl.results(out0: optional %33, out1: optional %34, out2: optional %35, out3: optional %36, out4: optional %37, out5: optional %38, out6: optional %39, out7: optional %40)
    }
    irdl.operation @nn_relu {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @nn_silu {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @nn_gelu {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @nn_gelu_tanh {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @nn_softmax {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @nn_log_softmax {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @nn_rms_norm {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(input: %0, weight: %1)
      %2 = irdl.base "#builtin.float" 
      irdl.attributes {"epsilon" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @nn_layer_norm {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      irdl.operands(input: %0, weight: %1, bias: %2)
      %3 = irdl.base "#builtin.float" 
      irdl.attributes {"epsilon" = %3}
      %4 = irdl.any
      irdl.results(result: %4)
    }
    irdl.operation @node {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.symbol_ref" 
      %33 = irdl.base @graph::@shape 
      %34 = irdl.base "#builtin.array" 
      irdl.attributes {"callee" = %32, "grid" = %33, "edges" = %34}
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      %41 = irdl.any
      %42 = irdl.any
      irdl.results(out0: optional %35, out1: optional %36, out2: optional %37, out3: optional %38, out4: optional %39, out5: optional %40, out6: optional %41, out7: optional %42)
    }
    irdl.operation @pad {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(input: %0, value: optional %1)
      %2 = irdl.base @graph::@shape 
      %3 = irdl.base @graph::@shape 
      %4 = irdl.base "#builtin.dense_array" 
      %5 = irdl.base "#builtin.string" 
      irdl.attributes {"low" = %2, "high" = %3, "interior" = %4, "mode" = %5}
      %6 = irdl.any
      irdl.results(result: %6)
    }
    irdl.operation @quantize {
      %0 = irdl.any
      irdl.operands(matrix: %0)
      %1 = irdl.base "#builtin.string" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"scheme" = %1, "axis" = %2}
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      irdl.results(data: %3, scale: %4, minimum: optional %5)
    }
    irdl.operation @dequantize {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      irdl.operands(data: %0, scale: %1, minimum: optional %2, high: optional %3, outer_scale: optional %4, outer_minimum: optional %5)
      %6 = irdl.base "#builtin.string" 
      irdl.attributes {"scheme" = %6}
      %7 = irdl.any
      irdl.results(result: %7)
    }
    irdl.operation @dequantize_rows {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      irdl.operands(indices: %0, data: %1, scale: %2, minimum: optional %3, high: optional %4, outer_scale: optional %5, outer_minimum: optional %6)
      %7 = irdl.base "#builtin.string" 
      irdl.attributes {"scheme" = %7}
      %8 = irdl.any
      irdl.results(result: %8)
    }
    irdl.operation @quantize_blocks {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.integer" 
      irdl.attributes {"symmetric" = %1}
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      irdl.results(values: %2, scale: %3, offset: optional %4)
    }
    irdl.operation @dequantize_blocks {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      irdl.operands(values: %0, scale: %1, offset: optional %2)
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @nn_paged_kv_append {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      irdl.operands(key_pages: %0, value_pages: %1, key: %2, value: %3, tables: %4, sequences: %5, positions: %6)
      %7 = irdl.any
      %8 = irdl.any
      irdl.results(new_key_pages: %7, new_value_pages: %8)
    }
    irdl.operation @nn_paged_attention {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      irdl.operands(query: %0, key_pages: %1, value_pages: %2, tables: %3, sequences: %4, positions: %5, key_scales: optional %6, value_scales: optional %7)
      %8 = irdl.base "#builtin.float" 
      %9 = irdl.base "#builtin.integer" 
      %10 = irdl.base "#builtin.float" 
      irdl.attributes {"scale" = %8, "window" = %9, "cap" = %10}
      %11 = irdl.any
      irdl.results(result: %11)
    }
    irdl.operation @flip {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      irdl.attributes {"axes" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @roll {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.dense_array" 
      irdl.attributes {"shifts" = %1, "axes" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @tile {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base @graph::@shape 
      irdl.attributes {"repeats" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @repeat {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base @graph::@shape 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"repeats" = %1, "axis" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @stack {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %32}
      %33 = irdl.any
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      irdl.results(out0: optional %33, out1: optional %34, out2: optional %35, out3: optional %36, out4: optional %37, out5: optional %38, out6: optional %39, out7: optional %40)
    }
    irdl.operation @cumsum {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.integer" 
      %2 = irdl.base "#builtin.integer" 
      %3 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %1, "exclusive" = %2, "reverse" = %3}
      %4 = irdl.any
      irdl.results(result: %4)
    }
    irdl.operation @cumprod {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.integer" 
      %2 = irdl.base "#builtin.integer" 
      %3 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %1, "exclusive" = %2, "reverse" = %3}
      %4 = irdl.any
      irdl.results(result: %4)
    }
    irdl.operation @scatter_elements {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      irdl.operands(input: %0, indices: %1, updates: %2)
      %3 = irdl.base "#builtin.integer" 
      %4 = irdl.base "#builtin.string" 
      irdl.attributes {"axis" = %3, "reduction" = %4}
      %5 = irdl.any
      irdl.results(result: %5)
    }
    irdl.operation @scatter_nd {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      irdl.operands(input: %0, indices: %1, updates: %2)
      %3 = irdl.base "#builtin.string" 
      irdl.attributes {"reduction" = %3}
      %4 = irdl.any
      irdl.results(result: %4)
    }
    irdl.operation @index_put {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.base "#builtin.dense_array" 
      %33 = irdl.base "#builtin.string" 
      irdl.attributes {"axes" = %32, "reduction" = %33}
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      %40 = irdl.any
      %41 = irdl.any
      irdl.results(out0: optional %34, out1: optional %35, out2: optional %36, out3: optional %37, out4: optional %38, out5: optional %39, out6: optional %40, out7: optional %41)
    }
    irdl.operation @slice_scatter {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(input: %0, updates: %1)
      %2 = irdl.base "#builtin.dense_array" 
      %3 = irdl.base @graph::@shape 
      %4 = irdl.base @graph::@shape 
      %5 = irdl.base "#builtin.dense_array" 
      irdl.attributes {"axes" = %2, "begin" = %3, "end" = %4, "strides" = %5}
      %6 = irdl.any
      irdl.results(result: %6)
    }
    irdl.operation @dynamic_update_slice {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      irdl.operands(input: %0, updates: %1, starts: %2)
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @sum {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axes" = %1, "keepdims" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @prod {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axes" = %1, "keepdims" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @max {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axes" = %1, "keepdims" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @min {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axes" = %1, "keepdims" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @any {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axes" = %1, "keepdims" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @all {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axes" = %1, "keepdims" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @mean {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axes" = %1, "keepdims" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @variance {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.integer" 
      %3 = irdl.base "#builtin.integer" 
      irdl.attributes {"axes" = %1, "keepdims" = %2, "correction" = %3}
      %4 = irdl.any
      irdl.results(result: %4)
    }
    irdl.operation @std {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.integer" 
      %3 = irdl.base "#builtin.integer" 
      irdl.attributes {"axes" = %1, "keepdims" = %2, "correction" = %3}
      %4 = irdl.any
      irdl.results(result: %4)
    }
    irdl.operation @logsumexp {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.dense_array" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axes" = %1, "keepdims" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @argmax {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.integer" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %1, "keepdims" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @argmin {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.integer" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %1, "keepdims" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @searchsorted {
      %0 = irdl.any
      %1 = irdl.any
      irdl.operands(input: %0, values: %1)
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"right" = %2}
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @first_nonzero {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base @graph::@shape 
      irdl.attributes {"count" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @match_cast {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @require {
      %0 = irdl.base "#builtin.array" 
      %1 = irdl.base "#builtin.string" 
      irdl.attributes {"any_of" = %0, "by" = %1}
    }
    irdl.operation @shape_of {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @is_present {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @tensor_to_shape {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @make_shape {
      %0 = irdl.base @graph::@shape 
      irdl.attributes {"dims" = %0}
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @sort {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.integer" 
      %2 = irdl.base "#builtin.integer" 
      irdl.attributes {"axis" = %1, "descending" = %2}
      %3 = irdl.any
      %4 = irdl.any
      irdl.results(values: %3, indices: %4)
    }
    irdl.operation @topk {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base @graph::@shape 
      %2 = irdl.base "#builtin.integer" 
      %3 = irdl.base "#builtin.integer" 
      irdl.attributes {"k" = %1, "axis" = %2, "largest" = %3}
      %4 = irdl.any
      %5 = irdl.any
      irdl.results(values: %4, indices: %5)
    }
    irdl.operation @argsort_rows {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @where {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      irdl.operands(condition: %0, x: %1, y: %2)
      %3 = irdl.any
      irdl.results(result: %3)
    }
    irdl.operation @tuple {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      %5 = irdl.any
      %6 = irdl.any
      %7 = irdl.any
      %8 = irdl.any
      %9 = irdl.any
      %10 = irdl.any
      %11 = irdl.any
      %12 = irdl.any
      %13 = irdl.any
      %14 = irdl.any
      %15 = irdl.any
      %16 = irdl.any
      %17 = irdl.any
      %18 = irdl.any
      %19 = irdl.any
      %20 = irdl.any
      %21 = irdl.any
      %22 = irdl.any
      %23 = irdl.any
      %24 = irdl.any
      %25 = irdl.any
      %26 = irdl.any
      %27 = irdl.any
      %28 = irdl.any
      %29 = irdl.any
      %30 = irdl.any
      %31 = irdl.any
      irdl.operands(in0: optional %0, in1: optional %1, in2: optional %2, in3: optional %3, in4: optional %4, in5: optional %5, in6: optional %6, in7: optional %7, in8: optional %8, in9: optional %9, in10: optional %10, in11: optional %11, in12: optional %12, in13: optional %13, in14: optional %14, in15: optional %15, in16: optional %16, in17: optional %17, in18: optional %18, in19: optional %19, in20: optional %20, in21: optional %21, in22: optional %22, in23: optional %23, in24: optional %24, in25: optional %25, in26: optional %26, in27: optional %27, in28: optional %28, in29: optional %29, in30: optional %30, in31: optional %31)
      %32 = irdl.any
      %33 = irdl.any
      %34 = irdl.any
      %35 = irdl.any
      %36 = irdl.any
      %37 = irdl.any
      %38 = irdl.any
      %39 = irdl.any
      irdl.results(out0: optional %32, out1: optional %33, out2: optional %34, out3: optional %35, out4: optional %36, out5: optional %37, out6: optional %38, out7: optional %39)
    }
    irdl.operation @tuple_get {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.base "#builtin.integer" 
      irdl.attributes {"index" = %1}
      %2 = irdl.any
      irdl.results(result: %2)
    }
    irdl.operation @abs {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @negative {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @sign {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @square {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @acos {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @acosh {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @asin {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @asinh {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @atan {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @atanh {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @ceil {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @cos {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @cosh {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @erf {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @exp {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @expm1 {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @floor {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @log {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @log10 {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @log1p {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @log2 {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @reciprocal {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @round {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @rsqrt {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @sigmoid {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @sin {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @sinh {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @sqrt {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @tan {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @tanh {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @trunc {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @isfinite {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @isinf {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @isnan {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @signbit {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @bitwise_not {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @popcount {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @logical_not {
      %0 = irdl.any
      irdl.operands(input: %0)
      %1 = irdl.any
      irdl.results(result: %1)
    }
    irdl.operation @vision_nms {
      %0 = irdl.any
      %1 = irdl.any
      %2 = irdl.any
      %3 = irdl.any
      %4 = irdl.any
      irdl.operands(boxes: %0, scores: %1, limit: %2, overlap: %3, least: %4)
      %5 = irdl.base "#builtin.integer" 
      irdl.attributes {"center" = %5}
      %6 = irdl.any
      irdl.results(result: %6)
    }
  }
}

