// Functions of PyTorch's dialect as torch-mlir writes them, by name; torch_cases.py has what they compute.


func.func @mlp(%arg0: !torch.vtensor<[?,4],f32>, %arg1: !torch.vtensor<[3,4],f32>, %arg2: !torch.vtensor<[3],f32>, %arg3: !torch.vtensor<[3],f32>) -> !torch.vtensor<[?,3],f32> {
    %int1 = torch.constant.int 1
    %int0 = torch.constant.int 0
    %0 = torch.prim.ListConstruct %int1, %int0 : (!torch.int, !torch.int) -> !torch.list<int>
    %1 = torch.aten.permute %arg1, %0 : !torch.vtensor<[3,4],f32>, !torch.list<int> -> !torch.vtensor<[4,3],f32>
    %2 = torch.aten.mm %arg0, %1 : !torch.vtensor<[?,4],f32>, !torch.vtensor<[4,3],f32> -> !torch.vtensor<[?,3],f32>
    %int1_0 = torch.constant.int 1
    %3 = torch.aten.mul.Scalar %2, %int1_0 : !torch.vtensor<[?,3],f32>, !torch.int -> !torch.vtensor<[?,3],f32>
    %int1_1 = torch.constant.int 1
    %4 = torch.aten.mul.Scalar %arg2, %int1_1 : !torch.vtensor<[3],f32>, !torch.int -> !torch.vtensor<[3],f32>
    %int1_2 = torch.constant.int 1
    %5 = torch.aten.add.Tensor %3, %4, %int1_2 : !torch.vtensor<[?,3],f32>, !torch.vtensor<[3],f32>, !torch.int -> !torch.vtensor<[?,3],f32>
    %str = torch.constant.str "none"
    %6 = torch.aten.gelu %5, %str : !torch.vtensor<[?,3],f32>, !torch.str -> !torch.vtensor<[?,3],f32>
    %int1_3 = torch.constant.int 1
    %7 = torch.prim.ListConstruct %int1_3 : (!torch.int) -> !torch.list<int>
    %int0_4 = torch.constant.int 0
    %true = torch.constant.bool true
    %result0, %result1 = torch.aten.var_mean.correction %6, %7, %int0_4, %true : !torch.vtensor<[?,3],f32>, !torch.list<int>, !torch.int, !torch.bool -> !torch.vtensor<[?,1],f32>, !torch.vtensor<[?,1],f32>
    %float1.000000e-05 = torch.constant.float 1.000000e-05
    %int1_5 = torch.constant.int 1
    %8 = torch.aten.add.Scalar %result0, %float1.000000e-05, %int1_5 : !torch.vtensor<[?,1],f32>, !torch.float, !torch.int -> !torch.vtensor<[?,1],f32>
    %9 = torch.aten.rsqrt %8 : !torch.vtensor<[?,1],f32> -> !torch.vtensor<[?,1],f32>
    %int1_6 = torch.constant.int 1
    %10 = torch.aten.sub.Tensor %6, %result1, %int1_6 : !torch.vtensor<[?,3],f32>, !torch.vtensor<[?,1],f32>, !torch.int -> !torch.vtensor<[?,3],f32>
    %11 = torch.aten.mul.Tensor %10, %9 : !torch.vtensor<[?,3],f32>, !torch.vtensor<[?,1],f32> -> !torch.vtensor<[?,3],f32>
    %12 = torch.aten.mul.Tensor %11, %arg3 : !torch.vtensor<[?,3],f32>, !torch.vtensor<[3],f32> -> !torch.vtensor<[?,3],f32>
    %int-1 = torch.constant.int -1
    %false = torch.constant.bool false
    %13 = torch.aten._softmax %12, %int-1, %false : !torch.vtensor<[?,3],f32>, !torch.int, !torch.bool -> !torch.vtensor<[?,3],f32>
    return %13 : !torch.vtensor<[?,3],f32>
  }

func.func @pairs(%arg0: !torch.vtensor<[?,3],f32>, %arg1: !torch.vtensor<[?,3],f32>) -> (!torch.vtensor<[?],f32>, !torch.vtensor<[?,?],f32>) {
    %0 = torch.prim.ListConstruct %arg0, %arg1 : (!torch.vtensor<[?,3],f32>, !torch.vtensor<[?,3],f32>) -> !torch.list<vtensor>
    %int0 = torch.constant.int 0
    %1 = torch.aten.cat %0, %int0 : !torch.list<vtensor>, !torch.int -> !torch.vtensor<[?,3],f32>
    %int-1 = torch.constant.int -1
    %int6 = torch.constant.int 6
    %2 = torch.prim.ListConstruct %int-1, %int6 : (!torch.int, !torch.int) -> !torch.list<int>
    %3 = torch.aten.view %1, %2 : !torch.vtensor<[?,3],f32>, !torch.list<int> -> !torch.vtensor<[?,?],f32>
    %int1 = torch.constant.int 1
    %4 = torch.prim.ListConstruct %int1 : (!torch.int) -> !torch.list<int>
    %false = torch.constant.bool false
    %none = torch.constant.none
    %5 = torch.aten.sum.dim_IntList %3, %4, %false, %none : !torch.vtensor<[?,?],f32>, !torch.list<int>, !torch.bool, !torch.none -> !torch.vtensor<[?],f32>
    %int0_0 = torch.constant.int 0
    %int0_1 = torch.constant.int 0
    %int9223372036854775807 = torch.constant.int 9223372036854775807
    %int1_2 = torch.constant.int 1
    %6 = torch.aten.slice.Tensor %arg0, %int0_0, %int0_1, %int9223372036854775807, %int1_2 : !torch.vtensor<[?,3],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[?,3],f32>
    %int1_3 = torch.constant.int 1
    %int1_4 = torch.constant.int 1
    %int9223372036854775807_5 = torch.constant.int 9223372036854775807
    %int1_6 = torch.constant.int 1
    %7 = torch.aten.slice.Tensor %6, %int1_3, %int1_4, %int9223372036854775807_5, %int1_6 : !torch.vtensor<[?,3],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[?,2],f32>
    %int1_7 = torch.constant.int 1
    %8 = torch.aten.unsqueeze %7, %int1_7 : !torch.vtensor<[?,2],f32>, !torch.int -> !torch.vtensor<[?,1,2],f32>
    %int0_8 = torch.constant.int 0
    %int0_9 = torch.constant.int 0
    %int9223372036854775807_10 = torch.constant.int 9223372036854775807
    %int1_11 = torch.constant.int 1
    %9 = torch.aten.slice.Tensor %arg1, %int0_8, %int0_9, %int9223372036854775807_10, %int1_11 : !torch.vtensor<[?,3],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[?,3],f32>
    %int1_12 = torch.constant.int 1
    %int1_13 = torch.constant.int 1
    %int9223372036854775807_14 = torch.constant.int 9223372036854775807
    %int1_15 = torch.constant.int 1
    %10 = torch.aten.slice.Tensor %9, %int1_12, %int1_13, %int9223372036854775807_14, %int1_15 : !torch.vtensor<[?,3],f32>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[?,2],f32>
    %int0_16 = torch.constant.int 0
    %11 = torch.aten.unsqueeze %10, %int0_16 : !torch.vtensor<[?,2],f32>, !torch.int -> !torch.vtensor<[1,?,2],f32>
    %int1_17 = torch.constant.int 1
    %12 = torch.aten.sub.Tensor %8, %11, %int1_17 : !torch.vtensor<[?,1,2],f32>, !torch.vtensor<[1,?,2],f32>, !torch.int -> !torch.vtensor<[?,?,2],f32>
    %13 = torch.aten.abs %12 : !torch.vtensor<[?,?,2],f32> -> !torch.vtensor<[?,?,2],f32>
    %int-1_18 = torch.constant.int -1
    %14 = torch.prim.ListConstruct %int-1_18 : (!torch.int) -> !torch.list<int>
    %false_19 = torch.constant.bool false
    %15 = torch.aten.amax %13, %14, %false_19 : !torch.vtensor<[?,?,2],f32>, !torch.list<int>, !torch.bool -> !torch.vtensor<[?,?],f32>
    return %5, %15 : !torch.vtensor<[?],f32>, !torch.vtensor<[?,?],f32>
  }

func.func @lookup(%arg0: !torch.vtensor<[?,2],f32>, %arg1: !torch.vtensor<[?],si64>) -> (!torch.vtensor<[?,2],f32>, !torch.vtensor<[2],f32>, !torch.vtensor<[?,2],f32>) {
    %0 = torch.prim.ListConstruct %arg1 : (!torch.vtensor<[?],si64>) -> !torch.list<optional<vtensor>>
    %1 = torch.aten.index.Tensor %arg0, %0 : !torch.vtensor<[?,2],f32>, !torch.list<optional<vtensor>> -> !torch.vtensor<[?,2],f32>
    %int-1 = torch.constant.int -1
    %false = torch.constant.bool false
    %false_0 = torch.constant.bool false
    %2 = torch.aten.embedding %arg0, %arg1, %int-1, %false, %false_0 : !torch.vtensor<[?,2],f32>, !torch.vtensor<[?],si64>, !torch.int, !torch.bool, !torch.bool -> !torch.vtensor<[?,2],f32>
    %int0 = torch.constant.int 0
    %3 = torch.prim.ListConstruct %int0 : (!torch.int) -> !torch.list<int>
    %false_1 = torch.constant.bool false
    %none = torch.constant.none
    %4 = torch.aten.mean.dim %2, %3, %false_1, %none : !torch.vtensor<[?,2],f32>, !torch.list<int>, !torch.bool, !torch.none -> !torch.vtensor<[2],f32>
    %int0_2 = torch.constant.int 0
    %int0_3 = torch.constant.int 0
    %int9223372036854775807 = torch.constant.int 9223372036854775807
    %int1 = torch.constant.int 1
    %5 = torch.aten.slice.Tensor %arg1, %int0_2, %int0_3, %int9223372036854775807, %int1 : !torch.vtensor<[?],si64>, !torch.int, !torch.int, !torch.int, !torch.int -> !torch.vtensor<[?],si64>
    %int1_4 = torch.constant.int 1
    %6 = torch.aten.unsqueeze %5, %int1_4 : !torch.vtensor<[?],si64>, !torch.int -> !torch.vtensor<[?,1],si64>
    %int-1_5 = torch.constant.int -1
    %int2 = torch.constant.int 2
    %7 = torch.prim.ListConstruct %int-1_5, %int2 : (!torch.int, !torch.int) -> !torch.list<int>
    %false_6 = torch.constant.bool false
    %8 = torch.aten.expand %6, %7, %false_6 : !torch.vtensor<[?,1],si64>, !torch.list<int>, !torch.bool -> !torch.vtensor<[?,2],si64>
    %int0_7 = torch.constant.int 0
    %false_8 = torch.constant.bool false
    %9 = torch.aten.gather %arg0, %int0_7, %8, %false_8 : !torch.vtensor<[?,2],f32>, !torch.int, !torch.vtensor<[?,2],si64>, !torch.bool -> !torch.vtensor<[?,2],f32>
    return %1, %4, %9 : !torch.vtensor<[?,2],f32>, !torch.vtensor<[2],f32>, !torch.vtensor<[?,2],f32>
  }

func.func @images(%arg0: !torch.vtensor<[?,3,9,9],f32>, %arg1: !torch.vtensor<[4,3,3,3],f32>) -> (!torch.vtensor<[?,4,2,2],f32>, !torch.vtensor<[?,3,1,1],f32>) {
    %none = torch.constant.none
    %int2 = torch.constant.int 2
    %int2_0 = torch.constant.int 2
    %0 = torch.prim.ListConstruct %int2, %int2_0 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1 = torch.constant.int 1
    %int1_1 = torch.constant.int 1
    %1 = torch.prim.ListConstruct %int1, %int1_1 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1_2 = torch.constant.int 1
    %int1_3 = torch.constant.int 1
    %2 = torch.prim.ListConstruct %int1_2, %int1_3 : (!torch.int, !torch.int) -> !torch.list<int>
    %false = torch.constant.bool false
    %int0 = torch.constant.int 0
    %int0_4 = torch.constant.int 0
    %3 = torch.prim.ListConstruct %int0, %int0_4 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1_5 = torch.constant.int 1
    %4 = torch.aten.convolution %arg0, %arg1, %none, %0, %1, %2, %false, %3, %int1_5 : !torch.vtensor<[?,3,9,9],f32>, !torch.vtensor<[4,3,3,3],f32>, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool, !torch.list<int>, !torch.int -> !torch.vtensor<[?,4,5,5],f32>
    %5 = torch.aten.relu %4 : !torch.vtensor<[?,4,5,5],f32> -> !torch.vtensor<[?,4,5,5],f32>
    %int2_6 = torch.constant.int 2
    %int2_7 = torch.constant.int 2
    %6 = torch.prim.ListConstruct %int2_6, %int2_7 : (!torch.int, !torch.int) -> !torch.list<int>
    %7 = torch.prim.ListConstruct  : () -> !torch.list<int>
    %int0_8 = torch.constant.int 0
    %int0_9 = torch.constant.int 0
    %8 = torch.prim.ListConstruct %int0_8, %int0_9 : (!torch.int, !torch.int) -> !torch.list<int>
    %int1_10 = torch.constant.int 1
    %int1_11 = torch.constant.int 1
    %9 = torch.prim.ListConstruct %int1_10, %int1_11 : (!torch.int, !torch.int) -> !torch.list<int>
    %false_12 = torch.constant.bool false
    %result0, %result1 = torch.aten.max_pool2d_with_indices %5, %6, %7, %8, %9, %false_12 : !torch.vtensor<[?,4,5,5],f32>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.list<int>, !torch.bool -> !torch.vtensor<[?,4,2,2],f32>, !torch.vtensor<[?,4,2,2],si64>
    %int-1 = torch.constant.int -1
    %int-2 = torch.constant.int -2
    %10 = torch.prim.ListConstruct %int-1, %int-2 : (!torch.int, !torch.int) -> !torch.list<int>
    %true = torch.constant.bool true
    %none_13 = torch.constant.none
    %11 = torch.aten.mean.dim %arg0, %10, %true, %none_13 : !torch.vtensor<[?,3,9,9],f32>, !torch.list<int>, !torch.bool, !torch.none -> !torch.vtensor<[?,3,1,1],f32>
    return %result0, %11 : !torch.vtensor<[?,4,2,2],f32>, !torch.vtensor<[?,3,1,1],f32>
  }

func.func @attend(%arg0: !torch.vtensor<[2,2,?,4],f32>, %arg1: !torch.vtensor<[2,2,?,4],f32>, %arg2: !torch.vtensor<[2,2,?,4],f32>) -> !torch.vtensor<[2,2,?,4],f32> {
    %int2 = torch.constant.int 2
    %0 = torch.aten.size.int %arg0, %int2 : !torch.vtensor<[2,2,?,4],f32>, !torch.int -> !torch.int
    %int2_0 = torch.constant.int 2
    %1 = torch.aten.size.int %arg2, %int2_0 : !torch.vtensor<[2,2,?,4],f32>, !torch.int -> !torch.int
    %float7.071070e-01 = torch.constant.float 0.70710678118654757
    %2 = torch.aten.mul.Scalar %arg0, %float7.071070e-01 : !torch.vtensor<[2,2,?,4],f32>, !torch.float -> !torch.vtensor<[2,2,?,4],f32>
    %int0 = torch.constant.int 0
    %int1 = torch.constant.int 1
    %int3 = torch.constant.int 3
    %int2_1 = torch.constant.int 2
    %3 = torch.prim.ListConstruct %int0, %int1, %int3, %int2_1 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %4 = torch.aten.permute %arg1, %3 : !torch.vtensor<[2,2,?,4],f32>, !torch.list<int> -> !torch.vtensor<[2,2,4,?],f32>
    %float7.071070e-01_2 = torch.constant.float 0.70710678118654757
    %5 = torch.aten.mul.Scalar %4, %float7.071070e-01_2 : !torch.vtensor<[2,2,4,?],f32>, !torch.float -> !torch.vtensor<[2,2,4,?],f32>
    %int2_3 = torch.constant.int 2
    %int2_4 = torch.constant.int 2
    %int4 = torch.constant.int 4
    %6 = torch.prim.ListConstruct %int2_3, %int2_4, %0, %int4 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %false = torch.constant.bool false
    %7 = torch.aten.expand %2, %6, %false : !torch.vtensor<[2,2,?,4],f32>, !torch.list<int>, !torch.bool -> !torch.vtensor<[2,2,?,4],f32>
    %int4_5 = torch.constant.int 4
    %int4_6 = torch.constant.int 4
    %8 = torch.prim.ListConstruct %int4_5, %0, %int4_6 : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %9 = torch.aten.view %7, %8 : !torch.vtensor<[2,2,?,4],f32>, !torch.list<int> -> !torch.vtensor<[4,?,4],f32>
    %int2_7 = torch.constant.int 2
    %int2_8 = torch.constant.int 2
    %int4_9 = torch.constant.int 4
    %10 = torch.prim.ListConstruct %int2_7, %int2_8, %int4_9, %1 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %false_10 = torch.constant.bool false
    %11 = torch.aten.expand %5, %10, %false_10 : !torch.vtensor<[2,2,4,?],f32>, !torch.list<int>, !torch.bool -> !torch.vtensor<[2,2,4,?],f32>
    %int4_11 = torch.constant.int 4
    %int4_12 = torch.constant.int 4
    %12 = torch.prim.ListConstruct %int4_11, %int4_12, %1 : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %13 = torch.aten.view %11, %12 : !torch.vtensor<[2,2,4,?],f32>, !torch.list<int> -> !torch.vtensor<[4,4,?],f32>
    %14 = torch.aten.bmm %9, %13 : !torch.vtensor<[4,?,4],f32>, !torch.vtensor<[4,4,?],f32> -> !torch.vtensor<[4,?,?],f32>
    %int2_13 = torch.constant.int 2
    %int2_14 = torch.constant.int 2
    %15 = torch.prim.ListConstruct %int2_13, %int2_14, %0, %1 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %16 = torch.aten.view %14, %15 : !torch.vtensor<[4,?,?],f32>, !torch.list<int> -> !torch.vtensor<[2,2,?,?],f32>
    %int-1 = torch.constant.int -1
    %false_15 = torch.constant.bool false
    %17 = torch.aten._softmax %16, %int-1, %false_15 : !torch.vtensor<[2,2,?,?],f32>, !torch.int, !torch.bool -> !torch.vtensor<[2,2,?,?],f32>
    %float-Inf = torch.constant.float 0xFFF0000000000000
    %18 = torch.aten.eq.Scalar %16, %float-Inf : !torch.vtensor<[2,2,?,?],f32>, !torch.float -> !torch.vtensor<[2,2,?,?],i1>
    %int-1_16 = torch.constant.int -1
    %true = torch.constant.bool true
    %19 = torch.aten.all.dim %18, %int-1_16, %true : !torch.vtensor<[2,2,?,?],i1>, !torch.int, !torch.bool -> !torch.vtensor<[2,2,?,1],i1>
    %int0_17 = torch.constant.int 0
    %none = torch.constant.none
    %none_18 = torch.constant.none
    %none_19 = torch.constant.none
    %false_20 = torch.constant.bool false
    %int1_21 = torch.constant.int 1
    %20 = torch.aten.full_like %17, %int0_17, %none, %none_18, %none_19, %false_20, %int1_21 : !torch.vtensor<[2,2,?,?],f32>, !torch.int, !torch.none, !torch.none, !torch.none, !torch.bool, !torch.int -> !torch.vtensor<[2,2,?,?],f32>
    %21 = torch.aten.where.self %19, %20, %17 : !torch.vtensor<[2,2,?,1],i1>, !torch.vtensor<[2,2,?,?],f32>, !torch.vtensor<[2,2,?,?],f32> -> !torch.vtensor<[2,2,?,?],f32>
    %int2_22 = torch.constant.int 2
    %int2_23 = torch.constant.int 2
    %22 = torch.prim.ListConstruct %int2_22, %int2_23, %0, %1 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %false_24 = torch.constant.bool false
    %23 = torch.aten.expand %21, %22, %false_24 : !torch.vtensor<[2,2,?,?],f32>, !torch.list<int>, !torch.bool -> !torch.vtensor<[2,2,?,?],f32>
    %int4_25 = torch.constant.int 4
    %24 = torch.prim.ListConstruct %int4_25, %0, %1 : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %25 = torch.aten.view %23, %24 : !torch.vtensor<[2,2,?,?],f32>, !torch.list<int> -> !torch.vtensor<[4,?,?],f32>
    %int2_26 = torch.constant.int 2
    %int2_27 = torch.constant.int 2
    %int4_28 = torch.constant.int 4
    %26 = torch.prim.ListConstruct %int2_26, %int2_27, %1, %int4_28 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %false_29 = torch.constant.bool false
    %27 = torch.aten.expand %arg2, %26, %false_29 : !torch.vtensor<[2,2,?,4],f32>, !torch.list<int>, !torch.bool -> !torch.vtensor<[2,2,?,4],f32>
    %int4_30 = torch.constant.int 4
    %int4_31 = torch.constant.int 4
    %28 = torch.prim.ListConstruct %int4_30, %1, %int4_31 : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %29 = torch.aten.view %27, %28 : !torch.vtensor<[2,2,?,4],f32>, !torch.list<int> -> !torch.vtensor<[4,?,4],f32>
    %30 = torch.aten.bmm %25, %29 : !torch.vtensor<[4,?,?],f32>, !torch.vtensor<[4,?,4],f32> -> !torch.vtensor<[4,?,4],f32>
    %int2_32 = torch.constant.int 2
    %int2_33 = torch.constant.int 2
    %int4_34 = torch.constant.int 4
    %31 = torch.prim.ListConstruct %int2_32, %int2_33, %0, %int4_34 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %32 = torch.aten.view %30, %31 : !torch.vtensor<[4,?,4],f32>, !torch.list<int> -> !torch.vtensor<[2,2,?,4],f32>
    %int2_35 = torch.constant.int 2
    %int0_36 = torch.constant.int 0
    %int1_37 = torch.constant.int 1
    %int3_38 = torch.constant.int 3
    %33 = torch.prim.ListConstruct %int2_35, %int0_36, %int1_37, %int3_38 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %34 = torch.aten.permute %32, %33 : !torch.vtensor<[2,2,?,4],f32>, !torch.list<int> -> !torch.vtensor<[?,2,2,4],f32>
    %int0_39 = torch.constant.int 0
    %35 = torch.aten.clone %34, %int0_39 : !torch.vtensor<[?,2,2,4],f32>, !torch.int -> !torch.vtensor<[?,2,2,4],f32>
    %int1_40 = torch.constant.int 1
    %int2_41 = torch.constant.int 2
    %int0_42 = torch.constant.int 0
    %int3_43 = torch.constant.int 3
    %36 = torch.prim.ListConstruct %int1_40, %int2_41, %int0_42, %int3_43 : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
    %37 = torch.aten.permute %35, %36 : !torch.vtensor<[?,2,2,4],f32>, !torch.list<int> -> !torch.vtensor<[2,2,?,4],f32>
    return %37 : !torch.vtensor<[2,2,?,4],f32>
  }

func.func @numbers(%arg0: !torch.vtensor<[?],si64>, %arg1: !torch.vtensor<[?],si64>) -> (!torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],i1>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],f32>) {
    %str = torch.constant.str "floor"
    %0 = torch.aten.div.Tensor_mode %arg0, %arg1, %str : !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>, !torch.str -> !torch.vtensor<[?],si64>
    %1 = torch.aten.remainder.Tensor %arg0, %arg1 : !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64> -> !torch.vtensor<[?],si64>
    %2 = torch.aten.gt.Tensor %arg0, %arg1 : !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64> -> !torch.vtensor<[?],i1>
    %int2 = torch.constant.int 2
    %3 = torch.aten.gt.Scalar %arg1, %int2 : !torch.vtensor<[?],si64>, !torch.int -> !torch.vtensor<[?],i1>
    %4 = torch.aten.bitwise_and.Tensor %2, %3 : !torch.vtensor<[?],i1>, !torch.vtensor<[?],i1> -> !torch.vtensor<[?],i1>
    %5 = torch.aten.gt.Tensor %arg0, %arg1 : !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64> -> !torch.vtensor<[?],i1>
    %6 = torch.aten.where.self %5, %arg0, %arg1 : !torch.vtensor<[?],i1>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64> -> !torch.vtensor<[?],si64>
    %int0 = torch.constant.int 0
    %none = torch.constant.none
    %7 = torch.aten.cumsum %6, %int0, %none : !torch.vtensor<[?],si64>, !torch.int, !torch.none -> !torch.vtensor<[?],si64>
    %none_0 = torch.constant.none
    %none_1 = torch.constant.none
    %int4 = torch.constant.int 4
    %cpu = torch.constant.device "cpu"
    %int0_2 = torch.constant.int 0
    torch.aten._assert_tensor_metadata %arg0, %none_0, %none_1, %int4, %cpu, %int0_2 : !torch.vtensor<[?],si64>, !torch.none, !torch.none, !torch.int, !torch.Device, !torch.int
    %int6 = torch.constant.int 6
    %8 = torch.prims.convert_element_type %arg0, %int6 : !torch.vtensor<[?],si64>, !torch.int -> !torch.vtensor<[?],f32>
    %9 = torch.aten.round %8 : !torch.vtensor<[?],f32> -> !torch.vtensor<[?],f32>
    return %0, %1, %4, %7, %9 : !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],i1>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],f32>
  }
