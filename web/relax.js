// Runs modules that relax-mlir compiles for WebAssembly, in browsers and Node.
//
//     import { load, Tensor } from "./relax.js";
//     const module = await load(await fetch("model.wasm"));
//     const y = module.call("main", new Tensor(new Float32Array([1, 2, 3]), [1, 3]));
//
// The module checks its arguments, so its messages are those of other CPUs. Layouts are those of
// relax_mlir/runtime/csrc/relax_runtime.h, with addresses of 32 bits.

import { startWorkers } from "./threads.js";

const TENSOR_BYTES = 40;
const CALL_BYTES = 128;
const FRESH_BYTES = 16;
const MAX_RANK = 32;
const PAGE = 65536;
const MOST_THREADS = 64;
const HOST = 1; // DLPack's device
const ERROR = 1;
const OUT_OF_MEMORY = 2;

// Of each element type: DLPack's code, bits, and the array that holds its elements.
export const ELEMENTS = {
  f64: [2, 64, Float64Array],
  f32: [2, 32, Float32Array],
  f16: [2, 16, Uint16Array],
  bf16: [4, 16, Uint16Array],
  f8E4M3FN: [10, 8, Uint8Array],
  f8E4M3FNUZ: [11, 8, Uint8Array],
  f8E5M2: [12, 8, Uint8Array],
  f8E5M2FNUZ: [13, 8, Uint8Array],
  i64: [0, 64, BigInt64Array],
  i32: [0, 32, Int32Array],
  i16: [0, 16, Int16Array],
  i8: [0, 8, Int8Array],
  ui64: [1, 64, BigUint64Array],
  ui32: [1, 32, Uint32Array],
  ui16: [1, 16, Uint16Array],
  ui8: [1, 8, Uint8Array],
  i1: [6, 8, Uint8Array],
  index: [0, 64, BigInt64Array],
};

/** What a module refuses, or what it cannot do. */
export class RelaxError extends Error {
  name = "RelaxError";
}

/** There is no memory for arguments, results, temporaries, or in a kernel. */
export class OutOfMemoryError extends RelaxError {
  name = "OutOfMemoryError";
}

/** An array of elements with dims, row-major; floats of 16 and 8 bits, and i1, as their bits. */
export class Tensor {
  constructor(data, dims = [data.length], dtype = undefined) {
    if (!ArrayBuffer.isView(data)) throw new RelaxError("data of a tensor are a typed array");
    if (dtype !== undefined && !(dtype in ELEMENTS)) {
      throw new RelaxError(`unknown element type '${dtype}'; known are ${Object.keys(ELEMENTS).join(", ")}`);
    }
    if (dtype !== undefined && !(data instanceof ELEMENTS[dtype][2])) {
      throw new RelaxError(`elements of ${dtype} are a ${ELEMENTS[dtype][2].name}, but data are a ${data.constructor.name}`);
    }
    const count = dims.reduce((product, dim) => product * dim, 1);
    if (count !== data.length) {
      throw new RelaxError(`dims [${dims.join(", ")}] are of ${count} elements, but there are ${data.length}`);
    }
    this.data = data;
    this.dims = [...dims];
    this.dtype = dtype;
  }
}

/** A tensor in the memory of a module, which calls take without a copy, until it is freed. */
export class Placed {
  #module;

  constructor(module, address, dims, dtype) {
    this.#module = module;
    this.device = HOST;
    this.address = address;
    this.dims = dims;
    this.dtype = dtype;
  }

  get module() {
    return this.#module;
  }

  /** A copy. */
  read() {
    this.#check();
    return this.#module._read(this.address, this.dims, this.dtype);
  }

  /** Writes bytes at an offset. */
  write(bytes, offset = 0) {
    this.bytes().set(bytes, offset);
  }

  /** Copies the elements, in so many parts, to the beginnings of as many parts of a larger tensor. */
  spread(to, parts) {
    const [source, target] = [this.bytes(), to.bytes()];
    const [narrow, wide] = [source.length / parts, target.length / parts];
    for (let i = 0; i < parts; i++) target.set(source.subarray(i * narrow, (i + 1) * narrow), i * wide);
  }

  /** The bytes of the elements, in the memory of the module; valid until that grows. */
  bytes() {
    this.#check();
    return this.#module._bytes(this.address, byteLength(this.dims, this.dtype));
  }

  free() {
    this.#check();
    this.#module._exports.rx_free(this.address);
    this.address = 0;
  }

  #check() {
    if (!this.address) throw new RelaxError("the tensor is freed");
  }
}

/** Prints to the console what ends in a line end. */
export const printLine = (text) => console.log(text.replace(/\n$/, ""));

/** A module of bytes, a Response, or a WebAssembly.Module. */
export async function compiledModule(source) {
  const given = await source;
  const isResponse = typeof Response !== "undefined" && given instanceof Response;
  if (isResponse && !given.ok) throw new RelaxError(`cannot load ${given.url}: status ${given.status}`);
  const bytes = isResponse ? await given.arrayBuffer() : given;
  return bytes instanceof WebAssembly.Module ? bytes : await WebAssembly.compile(bytes);
}

/**
 * Compiles and instantiates a module, given as bytes, a Response, or a WebAssembly.Module.
 * `print` receives what the module prints. Modules for `wasm32+atomics` take several `threads`, and
 * reserve addresses for `maxBytes` of memory.
 */
export async function load(source, { print = printLine, threads = 1, maxBytes = 2 ** 32 } = {}) {
  const compiled = await compiledModule(source);
  const pages = WebAssembly.Module.customSections(compiled, "relax.pages")[0];
  checkThreads(threads, pages !== undefined);
  if (WebAssembly.Module.imports(compiled).some(({ name }) => name.startsWith("device_"))) {
    throw new RelaxError("the kernels of the module run on WebGPU: load it by loadOnWebGpu of webgpu.js");
  }
  let module;
  const relax = hostFunctions(print, () => module);
  if (pages !== undefined) {
    const initial = Number(new TextDecoder().decode(pages));
    relax.memory = new WebAssembly.Memory({ initial, maximum: Math.max(initial, Math.floor(maxBytes / PAGE)), shared: true });
  }
  const instance = await WebAssembly.instantiate(compiled, { relax });
  if (pages !== undefined) instance.exports.rx_initialize();
  module = new Module(instance);
  if (threads > 1) module._start(await startWorkers(compiled, relax.memory, instance.exports, threads - 1));
  return module;
}

function checkThreads(threads, isShared) {
  if (!Number.isInteger(threads) || threads < 1 || threads > MOST_THREADS) {
    throw new RelaxError(`threads is ${threads}; expects 1 to ${MOST_THREADS}`);
  }
  if (threads > 1 && !isShared) {
    throw new RelaxError("the module is compiled for one thread; --target=wasm32+atomics makes one that has several");
  }
  if (threads > 1 && globalThis.crossOriginIsolated === false) {
    throw new RelaxError(
      "threads need a page that is isolated: the server has to send Cross-Origin-Opener-Policy: same-origin " +
        "and Cross-Origin-Embedder-Policy: require-corp; threads: 1 needs nothing",
    );
  }
}

/** What any module imports. */
export function hostFunctions(print, module) {
  return {
    now: () => BigInt(Math.round(performance.now() * 1e6)),
    print: (text, length) => print(module()._text(text, length)),
  };
}

/** A loaded module; `functions` describes what can be called, by names. */
export class Module {
  #context;
  #blocks = [];
  #workers = [];
  #error = null;

  constructor(instance) {
    this._exports = instance.exports;
    if (typeof this._exports.rx_metadata !== "function") {
      throw new RelaxError("the module is not one that relax-mlir compiled");
    }
    this.metadata = JSON.parse(this._text(this._exports.rx_metadata()));
    this.functions = this.metadata.functions;
    this.#context = this._exports.rx_create();
    if (!this.#context) throw new OutOfMemoryError("out of memory: a context of the module");
  }

  /** Adds workers, whose threads are used from now on. */
  _start(workers) {
    this.#workers = workers;
  }

  /** Ends the threads of the module: calls run on one from then on. */
  close() {
    for (const worker of this.#workers.splice(0)) worker.end();
  }

  /** Calls a function; its result, an array of several, or undefined. */
  call(name, ...values) {
    const signature = this._signature(name, values);
    const fresh = [];
    try {
      const prepared = this._prepare(name, signature, values, fresh);
      this._enter(prepared);
      return this._finish(signature, values, prepared, fresh);
    } finally {
      for (const address of fresh) this._exports.rx_release(address);
      this._free();
    }
  }

  /** What a function takes and returns; checks the count of arguments. */
  _signature(name, values) {
    const signature = this.functions[name];
    if (signature === undefined) {
      const known = Object.keys(this.functions).map((each) => `'${each}'`).join(", ");
      throw new RelaxError(`no function '${name}', the module has ${known || "none"}`);
    }
    const expected = signature.arguments.length;
    if (values.length !== expected) {
      const plural = expected === 1 ? "" : "s";
      throw new RelaxError(`'${name}' has ${expected} argument${plural}, but got ${values.length}`);
    }
    return signature;
  }

  /** Frees memory of a call. */
  _free() {
    while (this.#blocks.length) this._exports.rx_free(this.#blocks.pop());
  }

  /** Copies a tensor to the memory of the module. */
  place(value, dtype = undefined) {
    const tensor = toTensor(value, { kind: "tensor", dtype: dtype ?? value.dtype });
    const address = this.#allocate(tensor.data.byteLength, "a tensor");
    this._bytes(address, tensor.data.byteLength).set(bytesOf(tensor.data));
    return new Placed(this, address, tensor.dims, tensor.dtype);
  }

  /** A tensor of zeros in the memory of the module. */
  reserve(dims, dtype) {
    const size = byteLength(dims, dtype);
    const address = this.#allocate(size, `a tensor of ${size} bytes`);
    this._bytes(address, size).fill(0);
    return new Placed(this, address, [...dims], dtype);
  }

  /** Counters of work since the module was loaded. */
  counters() {
    const names = ["allocations", "kernels", "parallel_regions", "arena_bytes"];
    return Object.fromEntries(names.map((name, which) => [name, Number(this._exports.rx_counter(which))]));
  }

  /** Describes a call; `fresh` gets where its results will be. */
  _prepare(name, signature, values, fresh) {
    const args = this.#block(TENSOR_BYTES * values.length, "a call");
    const tensors = values.map((value, index) => {
      const argument = signature.arguments[index];
      const label = argument.name ? `argument ${index} '${argument.name}'` : `argument ${index}`;
      return this.#pass(args + TENSOR_BYTES * index, value, argument, label);
    });
    const count = signature.results.length;
    const results = this.#block(TENSOR_BYTES * count, "a call");
    this._bytes(results, TENSOR_BYTES * count).fill(0);
    const rooms = this.#block(4 * count, "a call");
    signature.results.forEach((_, index) => {
      const room = this.#block(FRESH_BYTES + 8 * MAX_RANK, "a call");
      this._bytes(room, FRESH_BYTES).fill(0);
      fresh.push(room);
      this.#view().setUint32(rooms + 4 * index, room, true);
    });
    const call = this.#block(CALL_BYTES, "a call");
    this._bytes(call, CALL_BYTES).fill(0);
    const entry = this._exports[`rx_entry_${name}`].value;
    [this.#context, entry, args, results, values.length, count].forEach((word, index) => {
      this.#view().setUint32(call + 4 * index, word, true);
    });
    return { call, rooms, tensors };
  }

  /** The results of a call, and what it wrote to arguments. */
  _finish(signature, values, { tensors }, fresh) {
    tensors.forEach(({ tensor, address }, index) => {
      if (signature.arguments[index].inout && tensor instanceof Tensor) {
        bytesOf(tensor.data).set(this._bytes(address, tensor.data.byteLength));
      }
    });
    const made = signature.results.map((result, index) =>
      result.alias === null ? this._take(fresh[index], result) : values[result.alias],
    );
    return made.length > 1 ? made : made[0];
  }

  /** Makes a call; throws what it fails with. */
  _enter({ call, rooms }) {
    const stack = this._exports.__stack_pointer.value;
    let status, trap;
    try {
      status = this._exports.rx_call_on(call, 0, rooms);
    } catch (error) {
      trap = error;
      status = this._recovered(error, stack);
    }
    this._check(status, trap);
  }

  /** The status of a call that an error ended, which is thrown on if it is none of the module's. */
  _recovered(error, stack) {
    this._exports.__stack_pointer.value = stack;
    const status = this._exports.rx_recover();
    if (!(error instanceof WebAssembly.RuntimeError || error instanceof RangeError)) throw error;
    return status;
  }

  /** Throws what a call failed with. */
  _check(status, trap = undefined) {
    if (status === 0) return;
    if (this._exports.rx_has_lost_workers?.() && this.#workers.length) {
      this.close();
      throw new RelaxError("a thread ended in a call, or did not answer for long: calls run on one from now on");
    }
    if (trap !== undefined && status === ERROR) {
      const told = this._exports.rx_told_trap?.();
      if (told) throw new RelaxError(`a thread of the module stopped: ${this._text(told)}`);
      const isStack = trap instanceof RangeError;
      throw new RelaxError(isStack ? "the stack of the module is used up" : `the module stopped: ${trap.message}`);
    }
    const message = this._text(this._exports.rx_last_error(this.#context));
    throw new (status === OUT_OF_MEMORY ? OutOfMemoryError : RelaxError)(message);
  }

  /** Writes the descriptor of an argument; the tensor, and where its elements are. */
  #pass(at, value, argument, label) {
    const isPlaced = value instanceof Placed;
    if (isPlaced && (value.module !== this || !value.address)) {
      throw new RelaxError(`${label}: the tensor is freed, or of another module`);
    }
    const tensor = isPlaced ? value : toTensor(value, argument, label);
    if (argument.inout && !isPlaced && !(value instanceof Tensor)) {
      throw new RelaxError(`${label}: a tensor is expected, which is written to`);
    }
    const [address, device] = isPlaced
      ? [value.address, value.device]
      : this._send(bytesOf(tensor.data), locatedKind(argument), `${label}, ${tensor.data.byteLength} bytes`);
    const dims = this.#block(8 * tensor.dims.length, label);
    const view = this.#view();
    tensor.dims.forEach((dim, index) => view.setBigInt64(dims + 8 * index, BigInt(dim), true));
    const [code, bits] = ELEMENTS[tensor.dtype];
    [address, device, 0, tensor.dims.length].forEach((word, index) => view.setUint32(at + 4 * index, word, true));
    view.setUint8(at + 16, code);
    view.setUint8(at + 17, bits);
    view.setUint16(at + 18, 1, true);
    [dims, 0, 0, 0, 0].forEach((word, index) => view.setUint32(at + 20 + 4 * index, word, true));
    return { tensor, address };
  }

  /** Copies an argument to memory until the end of the call; its address, and DLPack's device. */
  _send(bytes, kind, label) {
    const address = this.#block(bytes.length, label);
    this._bytes(address, bytes.length).set(bytes);
    return [address, HOST];
  }

  /** Where the elements of a result are, and its dims. */
  _result(fresh) {
    const view = this.#view();
    const rank = Number(view.getBigInt64(fresh + 8, true));
    const dims = Array.from({ length: rank }, (_, d) => Number(view.getBigInt64(fresh + 16 + 8 * d, true)));
    return { address: view.getUint32(fresh, true), dims };
  }

  /** A copy of a result: a tensor, a number for a scalar, numbers for a shape. */
  _take(fresh, result) {
    const { address, dims } = this._result(fresh);
    const tensor = this._read(address, dims, result.dtype);
    if (result.kind === "shape") return Array.from(tensor.data, Number);
    return result.kind === "scalar" ? tensor.data[0] : tensor;
  }

  /** A copy of elements in the memory of the module. */
  _read(address, dims, dtype) {
    const Elements = ELEMENTS[dtype][2];
    const count = dims.reduce((product, dim) => product * dim, 1);
    const data = new Elements(count);
    bytesOf(data).set(this._bytes(address, data.byteLength));
    return new Tensor(data, dims, dtype);
  }

  /** Text of a length, or up to a zero. */
  _text(address, length = undefined) {
    const memory = new Uint8Array(this._exports.memory.buffer);
    const begin = address >>> 0;
    const end = length === undefined ? memory.indexOf(0, begin) : begin + length;
    return new TextDecoder().decode(memory.slice(begin, end));
  }

  /** Memory until the end of the call. */
  #block(bytes, label) {
    const address = this.#allocate(bytes, label);
    this.#blocks.push(address);
    return address;
  }

  #allocate(bytes, label) {
    const address = this._exports.rx_allocate(BigInt(bytes)) >>> 0;
    if (!address) throw new OutOfMemoryError(`out of memory: ${label}`);
    return address;
  }

  _bytes(address, count) {
    return new Uint8Array(this._exports.memory.buffer, address, count);
  }

  #view() {
    return new DataView(this._exports.memory.buffer);
  }
}

export function byteLength(dims, dtype) {
  return dims.reduce((product, dim) => product * dim, ELEMENTS[dtype][2].BYTES_PER_ELEMENT);
}

/** Where an argument or a result is: "tensor" for what a module with a device has there. */
export const locatedKind = (value) => (value.on_host ? "host" : value.kind);

export function bytesOf(array) {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** What a call takes, as a tensor with an element type. */
export function toTensor(value, argument, label = "the value") {
  if (argument.kind === "shape" && Array.isArray(value)) {
    if (!value.every((dim) => Number.isSafeInteger(dim))) {
      throw new RelaxError(`${label}: integers are expected, but got [${value.join(", ")}]`);
    }
    return new Tensor(BigInt64Array.from(value, BigInt), [value.length], "i64");
  }
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") {
    return scalar(value, argument, label);
  }
  const tensor = ArrayBuffer.isView(value) ? new Tensor(value) : value;
  if (!(tensor instanceof Tensor)) throw new RelaxError(`${label}: a tensor is expected`);
  if (tensor.dtype !== undefined) return tensor;
  // Types that share an array are told apart by what the function takes.
  const wanted = ELEMENTS[argument.dtype];
  const matches = wanted !== undefined && tensor.data instanceof wanted[2];
  const found = Object.keys(ELEMENTS).find((each) => tensor.data instanceof ELEMENTS[each][2]);
  if (!matches && found === undefined) {
    throw new RelaxError(`${label}: elements of a ${tensor.data.constructor.name} have no type`);
  }
  return new Tensor(tensor.data, tensor.dims, matches ? argument.dtype : found);
}

function scalar(value, argument, label) {
  const element = ELEMENTS[argument.dtype];
  const isBig = element !== undefined && element[1] === 64 && element[0] < 2;
  const isInteger = element !== undefined && element[0] < 2;
  const fits = typeof value === "boolean" ? argument.dtype === "i1" : !isInteger || Number.isSafeInteger(Number(value));
  if (element === undefined || !fits || ["f16", "bf16"].includes(argument.dtype)) {
    throw new RelaxError(`${label}: ${argument.dtype} is expected, but got ${value}`);
  }
  const data = element[2].of(isBig ? BigInt(value) : Number(value));
  if (isInteger && BigInt(data[0]) !== BigInt(value)) {
    throw new RelaxError(`${label}: ${value} is out of the range of ${argument.dtype}`);
  }
  return new Tensor(data, [], argument.dtype);
}
