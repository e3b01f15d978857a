// RUN: relax-opt %s --split-input-file --verify-diagnostics --relax-verify

!b = tensor<2x7x4xf32>
!s = tensor<2x3x7xf32>
!f = tensor<f32>
func.func @vision_nms_c1(%b: !b, %s: tensor<2x3x7xf64>, %l: tensor<i64>, %t: !f) {
  // expected-error @below {{'graph.vision_nms' op expects one element type, but got f32 and f64}}
  %0 = "graph.vision_nms"(%b, %s, %l, %t, %t) {center = false} : (!b, tensor<2x3x7xf64>, tensor<i64>, !f, !f) -> tensor<2x3x7xi64>
  return
}

// -----

func.func @vision_nms_c1_integers(%b: tensor<2x7x4xi32>, %s: tensor<2x3x7xi32>, %l: tensor<i64>, %t: tensor<i32>) {
  // expected-error @below {{'graph.vision_nms' op expects a float element type, but got i32}}
  %0 = "graph.vision_nms"(%b, %s, %l, %t, %t) {center = false} : (tensor<2x7x4xi32>, tensor<2x3x7xi32>, tensor<i64>, tensor<i32>, tensor<i32>) -> tensor<2x3x7xi64>
  return
}

// -----

!b = tensor<2x7x5xf32>
!s = tensor<2x3x7xf32>
!f = tensor<f32>
func.func @vision_nms_c2(%b: !b, %s: !s, %l: tensor<i64>, %t: !f) {
  // expected-error @below {{'graph.vision_nms' op expects boxes of dims [b, n, 4], but got 'tensor<2 x 7 x 5 x f32>'}}
  %0 = "graph.vision_nms"(%b, %s, %l, %t, %t) {center = false} : (!b, !s, tensor<i64>, !f, !f) -> tensor<2x3x7xi64>
  return
}

// -----

!b = tensor<2x7x4xf32>
!s = tensor<3x7xf32>
!f = tensor<f32>
func.func @vision_nms_c2_scores(%b: !b, %s: !s, %l: tensor<i64>, %t: !f) {
  // expected-error @below {{'graph.vision_nms' op expects scores of dims [b, c, n], but got 'tensor<3 x 7 x f32>'}}
  %0 = "graph.vision_nms"(%b, %s, %l, %t, %t) {center = false} : (!b, !s, tensor<i64>, !f, !f) -> tensor<2x3x7xi64>
  return
}

// -----

!b = tensor<2x7x4xf32>
!s = tensor<2x3x8xf32>
!f = tensor<f32>
func.func @vision_nms_c3(%b: !b, %s: !s, %l: tensor<i64>, %t: !f) {
  // expected-error @below {{'graph.vision_nms' op has scores 'tensor<2 x 3 x 8 x f32>' of boxes 'tensor<2 x 7 x 4 x f32>'}}
  %0 = "graph.vision_nms"(%b, %s, %l, %t, %t) {center = false} : (!b, !s, tensor<i64>, !f, !f) -> tensor<2x3x8xi64>
  return
}

// -----

!b = tensor<2x7x4xf32>
!s = tensor<2x3x7xf32>
!f = tensor<f32>
func.func @vision_nms_c4(%b: !b, %s: !s, %l: tensor<i32>, %t: !f) {
  // expected-error @below {{'graph.vision_nms' op expects a limit of i64, but got i32}}
  %0 = "graph.vision_nms"(%b, %s, %l, %t, %t) {center = false} : (!b, !s, tensor<i32>, !f, !f) -> tensor<2x3x7xi64>
  return
}

// -----

!b = tensor<2x7x4xf32>
!s = tensor<2x3x7xf32>
!f = tensor<f32>
func.func @vision_nms_c4_rank(%b: !b, %s: !s, %l: tensor<1xi64>, %t: !f) {
  // expected-error @below {{'graph.vision_nms' op expects a bound of rank 0, but got 'tensor<1 x i64>'}}
  %0 = "graph.vision_nms"(%b, %s, %l, %t, %t) {center = false} : (!b, !s, tensor<1xi64>, !f, !f) -> tensor<2x3x7xi64>
  return
}
