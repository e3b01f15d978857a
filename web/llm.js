// Language models that `relax-llm export-web` writes, in browsers and Node.
//
//     import { load } from "./llm.js";
//     const model = await load(".", { progress: ({ loaded, total }) => console.log(loaded / total) });
//     for await (const piece of model.generate("Why is the sky blue?")) show(piece);
//
// Weights are streamed into the memory of the module, so that they are in memory once. A call
// computes until it is over: pages that stay responsive generate in a worker, as index.html does.

import { byteLength, load as loadModule, OutOfMemoryError, RelaxError } from "./relax.js";
import { Sampler } from "./sampler.js";
import { Tokenizer } from "./tokenizer.js";

export { OutOfMemoryError, RelaxError, Sampler, Tokenizer };

const VERSION = 1;
const FIRST_ROOM = 512; // tokens in caches, before they grow
const PROMPT_CHUNK = 128; // tokens of a prompt in one call
const ALIGNMENT = 64;

/**
 * Opens the model in a folder: a URL, or in Node a path. `progress` receives `{ loaded, total }` in
 * bytes; `read` replaces how files are read: from a name to an async iterable of bytes. `device` is
 * "webgpu" or "wasm"; by default WebGPU, if the folder has a module for it and there is a device.
 * Further options are those of `load` of relax.js.
 */
export async function load(folder = ".", { progress = () => {}, read = reader(folder), device = undefined, ...options } = {}) {
  if (![undefined, "webgpu", "wasm"].includes(device)) {
    throw new RelaxError(`device is '${device}'; expects "webgpu" or "wasm"`);
  }

  const manifest = JSON.parse(await text(read("manifest.json")));
  if (manifest.version !== VERSION) {
    throw new RelaxError(`manifest.json has version ${manifest.version}, but this loader reads ${VERSION}`);
  }
  const gpu = manifest.webgpu && device !== "wasm" ? await openGpu(device) : undefined;
  const file = gpu ? manifest.webgpu : manifest.module;
  const files = [file, ...manifest.weights];
  const state = { loaded: 0, total: files.reduce((sum, file) => sum + file.bytes, 0) };
  const advance = (bytes) => progress({ ...state, loaded: (state.loaded += bytes) });
  advance(0);
  const tokenizer = new Tokenizer(JSON.parse(await text(read("tokenizer.json"))));
  const code = new Uint8Array(file.bytes);
  let at = 0;
  for await (const piece of checked(read, file, advance)) {
    code.set(piece, at);
    at += piece.length;
  }
  const module = gpu ? await gpu.loadOnWebGpu(code, { ...options, gpu: gpu.device }) : await loadModule(code, options);
  const signature = module.functions.main;
  const caches = signature.arguments.filter((argument) => argument.inout).length;
  const parameters = await fill(module, signature.arguments.slice(2 + caches), read, manifest.weights, advance);
  const target = gpu ? manifest.webgpu.target : manifest.target;
  return new LanguageModel(module, parameters, tokenizer, { ...manifest, target });
}

/** A device of WebGPU with the functions for it; undefined if there is none and none is asked for. */
async function openGpu(device) {
  const { loadOnWebGpu, WebGpu } = await import("./webgpu.js");
  try {
    return { loadOnWebGpu, device: await WebGpu.open() };
  } catch (error) {
    if (device === "webgpu" || !(error instanceof RelaxError)) throw error;
    return undefined;
  }
}

/** Streams the chunks into tensors of the module. */
async function fill(module, kinds, read, chunks, advance) {
  const total = chunks.reduce((sum, chunk) => sum + chunk.bytes, 0);
  let tensors;
  try {
    tensors = kinds.map(({ dims, dtype }) => module.reserve(dims, dtype));
  } catch (error) {
    if (!(error instanceof OutOfMemoryError)) throw error;
    throw new OutOfMemoryError(`out of memory: the weights of ${total} bytes`);
  }
  const sizes = kinds.map(({ dims, dtype }) => byteLength(dims, dtype));
  let index = 0, at = 0; // in the tensor, and its padding
  const padded = (bytes) => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
  for (const chunk of chunks) {
    for await (let piece of checked(read, chunk, advance)) {
      while (piece.length) {
        if (index === tensors.length) throw new RelaxError("there are more weights than the decoder takes");
        const size = sizes[index];
        const count = Math.min(piece.length, padded(size) - at);
        if (at < size) tensors[index].write(piece.subarray(0, Math.min(count, size - at)), at);
        piece = piece.subarray(count);
        at += count;
        if (at === padded(size)) [index, at] = [index + 1, 0];
      }
    }
  }
  while (index < tensors.length && !sizes[index]) index++;
  if (index < tensors.length) throw new RelaxError("there are fewer weights than the decoder takes");
  return tensors;
}

/** A decoder with its weights and tokenizer. */
export class LanguageModel {
  constructor(module, parameters, tokenizer, manifest) {
    this.module = module;
    this.parameters = parameters;
    this.tokenizer = tokenizer;
    this.context = manifest.context;
    this.vocabSize = manifest.vocab_size;
    this.endIds = manifest.end_ids;
    this.name = manifest.name;
    this.target = manifest.target;
    this.chat = manifest.chat;
  }

  /** An empty sequence of up to `capacity` tokens. */
  session(capacity = this.context) {
    if (!Number.isInteger(capacity) || capacity < 1 || capacity > this.context) {
      throw new RelaxError(`capacity is ${capacity}; expects 1 to ${this.context}, the context`);
    }
    return new Session(this, capacity);
  }

  /** The tokens of a prompt: a text, or messages `{ role, content }`; `raw`: no chat template. */
  encode(prompt, { raw = false } = {}) {
    const isText = typeof prompt === "string";
    if (isText && (raw || this.chat === null)) return this.tokenizer.encode(prompt);
    if (raw || this.chat === null) {
      throw new RelaxError(`messages cannot be given to a model ${raw ? "raw" : "without a chat template"}; expects a text`);
    }
    const messages = isText ? [{ role: "user", content: prompt }] : prompt;
    return this.tokenizer.encode(render(this.chat, messages), { addSpecial: false });
  }

  /**
   * Answers a prompt: an async iterable of pieces of text. `maxTokens` null goes on until the context
   * is full; for `temperature`, `topK`, `topP`, `repetitionPenalty`, `seed` see sampler.js; `stop` are
   * texts that end the answer; `session` is that of the last answer to continue a conversation;
   * `signal` ends it early.
   */
  generate(prompt, options = {}) {
    return new Generation(this, prompt, options);
  }
}

/** One sequence of tokens with its caches. */
export class Session {
  #model;
  #caches;
  #kinds;
  #room;

  constructor(model, capacity) {
    this.#model = model;
    this.capacity = capacity;
    this.tokens = [];
    this.#kinds = model.module.functions.main.arguments.filter((argument) => argument.inout);
    this.#room = Math.min(capacity, FIRST_ROOM);
    this.#caches = this.#reserve(this.#room);
  }

  /** Runs the decoder on new tokens; the logits after the last of them. */
  async append(ids) {
    if (!ids.length) throw new RelaxError("no tokens are given; expects one or more");
    if (ids.length > this.capacity - this.tokens.length) {
      throw new RelaxError(`${ids.length} new tokens do not fit after ${this.tokens.length} in a context of ${this.capacity}`);
    }
    const { module, parameters, vocabSize } = this.#model;
    const wrong = ids.find((id) => !Number.isInteger(id) || id < 0 || id >= vocabSize);
    if (wrong !== undefined) throw new RelaxError(`token ${wrong} is not in the vocabulary of ${vocabSize} tokens`);
    this.#grow(this.tokens.length + ids.length);
    const lengths = [this.tokens.length, 1];
    const [logits] = await module.call("main", Int32Array.from(ids), lengths, ...this.#caches, ...parameters);
    for (const id of ids) this.tokens.push(id);
    return logits.data;
  }

  /** Removes all tokens but the first `length`. */
  truncate(length) {
    if (!Number.isInteger(length) || length < 0 || length > this.tokens.length) {
      throw new RelaxError(`length is ${length}; the session has ${this.tokens.length} tokens`);
    }
    this.tokens.length = length;
  }

  /** Gives the memory back. */
  free() {
    for (const cache of this.#caches.splice(0)) cache.free();
  }

  #reserve(room) {
    const caches = [];
    try {
      for (const { dims, dtype } of this.#kinds) {
        caches.push(this.#model.module.reserve(dims.map((dim) => (typeof dim === "number" ? dim : room)), dtype));
      }
    } catch (error) {
      for (const cache of caches) cache.free();
      if (!(error instanceof OutOfMemoryError)) throw error;
      throw new OutOfMemoryError(`out of memory: caches for ${room} tokens; a smaller context needs less`);
    }
    return caches;
  }

  /** Grows the caches until they have `length` tokens. */
  #grow(length) {
    if (length <= this.#room) return;
    let room = this.#room;
    while (room < length) room *= 2;
    room = Math.min(room, this.capacity);
    const grown = this.#reserve(room);
    this.#caches.forEach((cache, index) => {
      cache.spread(grown[index], cache.dims[0]);
      cache.free();
    });
    [this.#caches, this.#room] = [grown, room];
  }
}

/** An answer; after it: `tokens`, `stopReason` ("end", "stop", "length", "context", "abort"), `statistics`. */
export class Generation {
  #model;
  #prompt;
  #sampler;
  #options;
  #iterator;

  constructor(model, prompt, { maxTokens = 256, stop = [], session, raw = false, signal, ...sampling }) {
    if (maxTokens !== null && (!Number.isInteger(maxTokens) || maxTokens < 0)) {
      throw new RelaxError(`maxTokens is ${maxTokens}; expects an integer >= 0, or null`);
    }
    this.#model = model;
    this.#prompt = model.encode(prompt, { raw });
    this.#sampler = new Sampler(sampling);
    const wanted = maxTokens === null ? model.context : Math.max(this.#prompt.length + maxTokens, 1);
    this.session = session ?? model.session(Math.min(wanted, model.context));
    this.#options = { maxTokens, stop: typeof stop === "string" ? [stop] : stop, signal, isOwn: session === undefined };
    this.tokens = [];
    this.stopReason = undefined;
    this.statistics = { promptTokens: 0, reusedTokens: 0, promptSeconds: 0, steps: 0, stepSeconds: 0 };
    this.#iterator = this.#generate();
  }

  [Symbol.asyncIterator]() {
    return this.#iterator;
  }

  /** The whole answer; `onText` receives its pieces as they come. */
  async text(onText = () => {}) {
    let all = "";
    for await (const piece of this) {
      all += piece;
      onText(piece);
    }
    return all;
  }

  async *#generate() {
    const { tokenizer, endIds } = this.#model;
    const { stop, isOwn } = this.#options;
    const stream = tokenizer.stream();
    const texts = new StopTexts(stop);
    const stopIds = stop.map((each) => tokenizer.specialId(each));
    let reason;
    try {
      while ((reason = this.#limit()) === undefined) {
        const token = await this.#next();
        if (endIds.includes(token) || stopIds.includes(token)) {
          reason = endIds.includes(token) ? "end" : "stop";
          break;
        }
        this.tokens.push(token);
        const piece = texts.push(stream.push(token));
        if (piece) yield piece;
        if (texts.reached) break;
      }
      const rest = texts.push(stream.flush()) + texts.flush();
      this.stopReason = texts.reached ? "stop" : reason;
      if (rest) yield rest;
    } finally {
      if (isOwn) this.session.free();
    }
  }

  #limit() {
    const { maxTokens, signal } = this.#options;
    if (signal?.aborted) return "abort";
    if (this.tokens.length === maxTokens) return "length";
    const isFull = this.tokens.length && this.#prompt.length + this.tokens.length > this.session.capacity;
    return isFull ? "context" : undefined;
  }

  async #next() {
    const begin = performance.now();
    const logits = await this.#read([...this.#prompt, ...this.tokens]);
    const token = this.#sampler.sample(logits, [...this.#prompt, ...this.tokens]);
    const seconds = (performance.now() - begin) / 1000;
    if (this.tokens.length) {
      this.statistics.steps++;
      this.statistics.stepSeconds += seconds;
    } else this.statistics.promptSeconds = seconds;
    return token;
  }

  /** Appends the tokens that the caches lack; the logits after them. */
  async #read(tokens) {
    const { session } = this;
    // The last token is always run again: the caches do not contain logits.
    let known = 0;
    while (known < tokens.length - 1 && session.tokens[known] === tokens[known]) known++;
    if (tokens.length > session.capacity) {
      throw new RelaxError(`${tokens.length - known} new tokens do not fit after ${known} in a context of ${session.capacity}`);
    }
    session.truncate(known);
    if (!this.tokens.length) {
      this.statistics.reusedTokens = known;
      this.statistics.promptTokens = tokens.length - known;
    }
    let logits;
    if (known === tokens.length) throw new RelaxError("no tokens are given; expects one or more");
    for (let at = known; at < tokens.length; at += PROMPT_CHUNK) {
      logits = await session.append(tokens.slice(at, at + PROMPT_CHUNK));
    }
    return logits;
  }
}

/** Passes on text up to the first of some texts, and withholds what may be the start of one. */
class StopTexts {
  #texts;
  #pending = "";

  constructor(texts) {
    if (texts.includes("")) throw new RelaxError("a stop text is empty; expects one character or more");
    this.#texts = texts;
    this.reached = false;
  }

  push(piece) {
    if (this.reached) return "";
    const all = this.#pending + piece;
    const starts = this.#texts.map((each) => all.indexOf(each)).filter((at) => at >= 0);
    this.reached = starts.length > 0;
    const certain = this.reached ? Math.min(...starts) : all.length - this.#started(all);
    this.#pending = all.slice(certain);
    return all.slice(0, certain);
  }

  flush() {
    const pending = this.reached ? "" : this.#pending;
    this.#pending = "";
    return pending;
  }

  #started(all) {
    const longest = Math.min(Math.max(0, ...this.#texts.map((each) => each.length - 1)), all.length);
    for (let count = longest; count > 0; count--) {
      if (this.#texts.some((each) => each.startsWith(all.slice(-count)))) return count;
    }
    return 0;
  }
}

/** The text of a conversation: an optional system message, then questions and answers, up to a question. */
function render(chat, messages) {
  const roles = Array.from(messages, ({ role }) => role);
  const refuse = (why) => {
    throw new RelaxError(`${why}; expects an optional system message, then user and assistant in turn, up to user`);
  };
  if (roles[0] === "system" && chat.start.system === undefined) refuse("the model has no system messages");
  if (roles.at(-1) !== "user") refuse("the last message is not of role user");
  if (chat.start[roles[0]] === undefined) refuse(`the first message is of role ${roles[0]}`);
  const contents = messages.map(({ content }) => (chat.trim ? content.trim() : content));
  return roles.reduce((all, role, index) => {
    const before = index ? chat.between[roles[index - 1]]?.[role] : chat.start[role];
    if (before === undefined) refuse(`a message of role ${role} follows one of role ${roles[index - 1]}`);
    return all + before + contents[index];
  }, "") + chat.end;
}

/** A function that reads files of a folder by HTTP, or from a disk in Node: pieces of bytes. */
function reader(folder) {
  const isRemote = typeof process === "undefined" || !process.versions?.node || /^(https?|blob|data):/.test(folder);
  if (isRemote) {
    const base = new URL(`${folder}`.replace(/\/?$/, "/"), globalThis.location?.href);
    return async function* read(name, digest = undefined) {
      const response = await fetched(new URL(name, base), digest);
      const body = response.body.getReader();
      for (let next; !(next = await body.read()).done; ) yield next.value;
    };
  }
  return async function* read(name) {
    const [{ createReadStream }, { fileURLToPath }, { join }] = await Promise.all(
      ["node:fs", "node:url", "node:path"].map((each) => import(each)),
    );
    const path = `${folder}`.startsWith("file:") ? fileURLToPath(folder) : folder;
    yield* createReadStream(join(path, name), { highWaterMark: 1 << 20 });
  };
}

/** A file, from the browser's cache if it is there with a digest: a later visit loads nothing. */
async function fetched(url, digest) {
  const store = digest && globalThis.caches ? await caches.open("relax-models").catch(() => undefined) : undefined;
  const key = `${url}?sha256=${digest}`;
  const known = await store?.match(key);
  if (known) return known;
  const response = await fetch(url);
  if (!response.ok) throw new RelaxError(`cannot load ${response.url}: status ${response.status}`);
  if (!store) return response;
  try {
    await store.put(key, response.clone());
    return (await store.match(key)) ?? response;
  } catch {
    return response; // there is no room
  }
}

async function* checked(read, file, advance) {
  let count = 0;
  for await (const piece of read(file.file, file.sha256)) {
    count += piece.length;
    if (count > file.bytes) break;
    yield piece;
    advance(piece.length);
  }
  if (count !== file.bytes) throw new RelaxError(`${file.file} has not the ${file.bytes} bytes of manifest.json`);
}

async function text(pieces) {
  const decoder = new TextDecoder();
  let all = "";
  for await (const piece of pieces) all += decoder.decode(piece, { stream: true });
  return all + decoder.decode();
}
