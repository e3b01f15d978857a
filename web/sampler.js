// Takes the next token from logits; the order is that of relax_mlir/llm/generation/sampling.py:
// repetition penalty, top-k, temperature, top-p, draw. Of equal logits the lower id comes first.

import { RelaxError } from "./relax.js";

export class Sampler {
  constructor({ temperature = 0, topK = 0, topP = 1, repetitionPenalty = 1, seed = undefined } = {}) {
    require(temperature >= 0, "temperature", temperature, "a number >= 0");
    require(Number.isInteger(topK) && topK >= 0, "topK", topK, "an integer >= 0");
    require(topP > 0 && topP <= 1, "topP", topP, "a number > 0 and <= 1");
    require(repetitionPenalty > 0 && Number.isFinite(repetitionPenalty), "repetitionPenalty", repetitionPenalty, "a number > 0");
    require(seed === undefined || (Number.isSafeInteger(seed) && seed >= 0), "seed", seed, "an integer >= 0");
    Object.assign(this, { temperature, topK, topP, repetitionPenalty });
    this.uniform = seed === undefined ? Math.random : generator(seed);
  }

  /** The next token for logits, after the tokens in `history`; throws if none is likely. */
  sample(logits, history = []) {
    if (logits.some(Number.isNaN)) throw new RelaxError("the largest logit is NaN; expects a finite number");
    const penalized = this.repetitionPenalty === 1 ? logits : penalize(logits, history, this.repetitionPenalty);
    const best = argmax(penalized);
    if (!Number.isFinite(penalized[best])) {
      throw new RelaxError(`the largest logit is ${penalized[best]}; expects a finite number`);
    }
    if (this.temperature === 0) return best;
    let tokens = Array.from(penalized.keys());
    if (this.topK || this.topP < 1) tokens.sort((a, b) => penalized[b] - penalized[a] || a - b);
    if (this.topK) tokens = tokens.slice(0, this.topK);
    const weights = tokens.map((token) => Math.exp((penalized[token] - penalized[best]) / this.temperature));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    let count = 0;
    for (let sum = 0; count < tokens.length && (count === 0 || sum < this.topP * total); count++) sum += weights[count];
    if (this.topP === 1) count = tokens.length;
    return tokens[draw(weights.slice(0, count), this.uniform())];
  }
}

export function argmax(values) {
  let best = 0;
  for (let index = 1; index < values.length; index++) if (values[index] > values[best]) best = index;
  return best;
}

function penalize(logits, history, penalty) {
  const penalized = logits.slice();
  for (const token of new Set(history)) {
    penalized[token] = logits[token] > 0 ? logits[token] / penalty : logits[token] * penalty;
  }
  return penalized;
}

/** The index that a number in [0, 1) selects; never one of weight 0. */
function draw(weights, uniform) {
  let rest = uniform * weights.reduce((sum, weight) => sum + weight, 0);
  let last = 0;
  for (let index = 0; index < weights.length; index++) {
    if (weights[index] === 0) continue;
    last = index;
    rest -= weights[index];
    if (rest < 0) break;
  }
  return last;
}

/** Numbers in [0, 1) that a seed decides: Marsaglia's xorshift of 128 bits, seeded by SplitMix32. */
function generator(seed) {
  let mixed = (seed ^ Math.floor(seed / 2 ** 32)) >>> 0;
  const state = Uint32Array.from({ length: 4 }, () => {
    mixed = (mixed + 0x9e3779b9) >>> 0;
    let z = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0 || 1;
  });
  const next = () => {
    let t = state[3];
    const s = state[0];
    state.copyWithin(1, 0);
    t ^= t << 11;
    t ^= t >>> 8;
    state[0] = t ^ s ^ (s >>> 19);
    return state[0];
  };
  return () => ((next() >>> 5) * 2 ** 26 + (next() >>> 6)) / 2 ** 53;
}

function require(holds, name, value, expected) {
  if (!holds) throw new RelaxError(`${name} is ${value}; expects ${expected}`);
}
