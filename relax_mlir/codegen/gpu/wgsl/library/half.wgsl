// Floats of 16 bits, as bits in a word.

fn bf16_to_f32(bits: u32) -> f32 {
  return bitcast<f32>(bits << 16u);
}

fn bf16_from_f32(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}

fn f16_to_f32(bits: u32) -> f32 {
  let sign = (bits & 0x8000u) << 16u;
  let exponent = (bits >> 10u) & 31u;
  let mantissa = bits & 0x3ffu;
  if (exponent == 31u) { return bitcast<f32>(sign | 0x7f800000u | (mantissa << 13u)); }
  if (exponent == 0u) {
    return bitcast<f32>(sign | bitcast<u32>(f32(mantissa) * 5.9604644775390625e-08f));
  }
  return bitcast<f32>(sign | ((exponent + 112u) << 23u) | (mantissa << 13u));
}

fn f16_from_f32(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let a = bits & 0x7fffffffu;
  if (a > 0x7f800000u) { return sign | 0x7e00u | ((a >> 13u) & 0x3ffu); }
  if (a >= 0x47800000u) { return sign | 0x7c00u; }
  let exponent = a >> 23u;
  if (exponent < 102u) { return sign; }
  let mantissa = (a & 0x7fffffu) | 0x800000u;
  let shift = select(13u, 126u - exponent, exponent < 113u);
  let base = select((exponent - 113u) << 10u, 0u, exponent < 113u);
  let kept = mantissa >> shift;
  let rest = mantissa & ((1u << shift) - 1u);
  let half = 1u << (shift - 1u);
  let up = u32(rest > half || (rest == half && (kept & 1u) == 1u));
  return sign | (base + kept + up);
}
