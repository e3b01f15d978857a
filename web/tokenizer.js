// Text to token ids and back: byte-level BPE, from the data of relax_mlir/llm/web/tokens.py.
//
//     const tokenizer = new Tokenizer(await (await fetch("tokenizer.json")).json());
//     tokenizer.decode(tokenizer.encode("Hello"));

import { RelaxError } from "./relax.js";

/** The character that stands for each byte: itself if it is visible, else one from U+0100 on. */
const CHARACTERS = (() => {
  let next = 256;
  const isVisible = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return Array.from({ length: 256 }, (_, byte) => String.fromCodePoint(isVisible(byte) ? byte : next++));
})();
const BYTES = new Map(CHARACTERS.map((character, byte) => [character, byte]));
const LONGEST_CACHED = 64;
const MOST_CACHED = 20000;

export class Tokenizer {
  #tokens;
  #ids = new Map();
  #ranks = new Map(); // of pairs of ids: rank and the id of the whole
  #added = new Map();
  #special = new Set();
  #passes;
  #steps;
  #data;
  #cache = new Map();

  constructor(data) {
    this.#data = data;
    this.#tokens = [...data.tokens];
    data.tokens.forEach((text, id) => text !== null && this.#ids.set(text, id));
    for (let at = 0; at < data.merges.length; at += 2) {
      const [left, right] = [data.merges[at], data.merges[at + 1]];
      const whole = this.#ids.get(data.tokens[left] + data.tokens[right]);
      this.#ranks.set(this.#pair(left, right), [at / 2, whole]);
    }
    for (const { id, text, special } of data.added) {
      this.#tokens[id] = text;
      this.#added.set(text, id);
      if (special) this.#special.add(id);
    }
    // Added tokens are split off before the text is normalized, or after it.
    this.#passes = [false, true].map((normalized) => {
      const texts = data.added.filter((each) => each.normalized === normalized && each.text);
      return finder(texts.map(({ text, id }) => [normalized ? this.#normalized(text) : text, id]));
    });
    this.#steps = data.steps.map(({ pattern, ...step }) => ({ ...step, pattern: pattern && new RegExp(pattern, "gu") }));
  }

  /** The count of ids. */
  get size() {
    return this.#tokens.length;
  }

  /** The ids of a text; `addSpecial` adds those that the model expects around every text. */
  encode(text, { addSpecial = true } = {}) {
    if (typeof text !== "string" || /\p{Surrogate}/u.test(text)) {
      throw new RelaxError("the text cannot be encoded: it is not a string of valid Unicode");
    }
    const ids = addSpecial ? [...this.#data.before] : [];
    const [first, second] = this.#passes;
    for (const piece of first(text)) {
      if (typeof piece === "number") ids.push(piece);
      else
        for (const part of second(this.#normalized(piece))) {
          if (typeof part === "number") ids.push(part);
          else this.#encodePiece(part, ids);
        }
    }
    if (addSpecial) ids.push(...this.#data.after);
    return ids;
  }

  /** The text of ids; bytes that are not valid UTF-8 become U+FFFD. */
  decode(ids, { skipSpecial = true } = {}) {
    const stream = this.stream({ skipSpecial });
    return ids.map((id) => stream.push(id)).join("") + stream.flush();
  }

  /** A decoder that takes one id at a time, and never splits a character. */
  stream({ skipSpecial = true } = {}) {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return {
      push: (id) => (skipSpecial && this.#special.has(id) ? "" : decoder.decode(this.#bytesOf(id), { stream: true })),
      flush: () => decoder.decode(),
    };
  }

  /** The id of a token by its text in the vocabulary; undefined if there is none. */
  idOf(text) {
    return this.#added.get(text) ?? this.#ids.get(text);
  }

  /** The id of a token that decoded texts do not show; undefined if it is none. */
  specialId(text) {
    const id = this.idOf(text);
    return this.#special.has(id) ? id : undefined;
  }

  #normalized(text) {
    return this.#data.normalizer === null ? text : text.normalize(this.#data.normalizer);
  }

  #pair(left, right) {
    return left * 0x1000000 + right; // exact below 2^53
  }

  #bytesOf(id) {
    const text = this.#tokens[id];
    if (text === undefined || text === null) return new Uint8Array(0);
    const bytes = Array.from(text, (character) => BYTES.get(character));
    return bytes.includes(undefined) ? new TextEncoder().encode(text) : Uint8Array.from(bytes);
  }

  #encodePiece(text, ids) {
    let pieces = [text];
    for (const { kind, pattern, prefix } of this.#steps) {
      if (prefix) pieces = pieces.map((piece) => (piece.startsWith(" ") ? piece : ` ${piece}`));
      if (pattern) pieces = pieces.flatMap((piece) => isolated(piece, pattern));
      if (kind === "bytes") pieces = pieces.map(toCharacters);
    }
    for (const piece of pieces) {
      const known = this.#cache.get(piece);
      const found = known ?? this.#merged(piece);
      if (known === undefined && piece.length <= LONGEST_CACHED) {
        if (this.#cache.size >= MOST_CACHED) this.#cache.clear();
        this.#cache.set(piece, found);
      }
      for (const id of found) ids.push(id);
    }
  }

  /** The ids of a word: pairs become one token, those that were learnt first and are leftmost first. */
  #merged(word) {
    if (this.#data.ignore_merges && this.#ids.has(word)) return [this.#ids.get(word)];
    const ids = Array.from(word, (character) => this.#ids.get(character)).filter((id) => id !== undefined);
    const before = ids.map((_, at) => at - 1);
    const after = ids.map((_, at) => at + 1);
    const queue = new Queue();
    const consider = (at) => {
      if (at < 0 || after[at] >= ids.length) return;
      const merge = this.#ranks.get(this.#pair(ids[at], ids[after[at]]));
      if (merge !== undefined) queue.push([merge[0], at, merge[1], ids[at], ids[after[at]]]);
    };
    ids.forEach((_, at) => consider(at));
    for (let next; (next = queue.pop()) !== undefined; ) {
      const [, at, whole, left, right] = next;
      const second = after[at];
      if (ids[at] !== left || second >= ids.length || ids[second] !== right) continue; // merged since
      ids[at] = whole;
      ids[second] = -1;
      after[at] = after[second];
      if (after[at] < ids.length) before[after[at]] = at;
      consider(before[at]);
      consider(at);
    }
    return ids.filter((id) => id >= 0);
  }
}

/** Triples in the order of rank and position: a binary heap. */
class Queue {
  #items = [];

  push(item) {
    const items = this.#items;
    let at = items.push(item) - 1;
    for (let above; at > 0 && precedes(item, items[(above = (at - 1) >> 1)]); at = above) items[at] = items[above];
    items[at] = item;
  }

  pop() {
    const items = this.#items;
    const [first, last] = [items[0], items.pop()];
    if (!items.length) return first;
    let at = 0;
    for (let below; (below = 2 * at + 1) < items.length; at = below) {
      if (below + 1 < items.length && precedes(items[below + 1], items[below])) below++;
      if (!precedes(items[below], last)) break;
      items[at] = items[below];
    }
    items[at] = last;
    return first;
  }
}

function precedes(a, b) {
  return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
}

/** A function that splits texts at tokens, of those that begin at one position at the longest. */
function finder(tokens) {
  if (!tokens.length) return (text) => (text ? [text] : []);
  const ids = new Map(tokens);
  const longestFirst = [...ids.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(longestFirst.map((text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|"), "gu");
  return (text) => isolated(text, pattern).map((piece) => ids.get(piece) ?? piece);
}

/** The matches of a pattern and the texts between them, in order. */
function isolated(text, pattern) {
  const pieces = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > end) pieces.push(text.slice(end, match.index));
    if (match[0]) pieces.push(match[0]);
    end = match.index + match[0].length;
  }
  if (end < text.length) pieces.push(text.slice(end));
  return pieces;
}

function toCharacters(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => CHARACTERS[byte]).join("");
}
