// Runs modules that relax-mlir compiles for wasm32@webgpu: host code in WebAssembly, kernels on WebGPU.
//
//     import { loadOnWebGpu } from "./webgpu.js";
//     const module = await loadOnWebGpu(fetch("model.wasm"));
//     const y = await module.call("main", new Tensor(new Float32Array([1, 2, 3]), [1, 3]));
//
// Calls are as those of relax.js, but take the time of the device: their results are promised. Below
// is the device by itself, which relax_mlir/runtime/csrc/device/device.h describes:
//
//     const device = await WebGpu.open();
//     const kernel = await device.compile(code);       // as relax_mlir/codegen/gpu/wgsl makes it
//     const x = device.allocate(1024);
//     device.upload(x, new Float32Array(256));
//     device.launch(kernel, [1, 1, 1], [{ address: x, bytes: 1024 }, 256]);
//     const y = await device.download(x, 1024);
//
// WebGPU has no addresses, so memory is dealt out by number: a buffer of the device is a range of
// them. What is asked of the device is encoded, and submitted when results are wanted.

import {
  byteLength, compiledModule, ELEMENTS, bytesOf, hostFunctions, locatedKind, Module, OutOfMemoryError, Placed, printLine, RelaxError, Tensor, toTensor,
} from "./relax.js";

const ALIGNMENT = 256; // of what is bound, on every device
const FIRST_ADDRESS = 1 << 16; // no address is null, nor near it
const MOST_ADDRESSES = 2 ** 32;
const MOST_INDEX = 2 ** 31;
const UNIFORM_BYTES = 1 << 18;
const LAUNCHES = 512; // between submissions

const padded = (bytes, by = 4) => Math.ceil(bytes / by) * by;

/** What bounds of indices are, in the order of their steps (`index_bounds.py`). */
function evaluated(steps, scalars, grid) {
  const found = [];
  for (const [op, a, b] of steps) {
    if (op === "c") found.push(a);
    else if (op === "p") found.push(Math.max(0, Number(scalars[a])));
    else if (op === "n") found.push(Math.max(0, -Number(scalars[a])));
    else if (op === "g") found.push(grid[a] - 1);
    else if (op === "+") found.push(found[a] + found[b]);
    else if (op === "*") found.push(found[a] * found[b]);
    else if (op === "/") found.push(Math.floor(found[a] / Math.max(found[b], 1)));
    else found.push(Math.max(found[a], found[b]));
  }
  return found;
}

/** The words of a scalar: two of 64 bits. */
function wordsOf(type, value) {
  const words = new DataView(new ArrayBuffer(8));
  if (typeof value === "bigint" || type === "index" || type === "i64") {
    words.setBigInt64(0, BigInt.asIntN(64, BigInt(value)), true);
  } else if (type === "f32") words.setFloat32(0, value, true);
  else if (type === "f64") words.setFloat64(0, value, true);
  else words.setInt32(0, Number(value), true);
  return [words.getUint32(0, true), words.getUint32(4, true)];
}

// Whether a multiply-add is rounded once: (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24 then, else 0.
const PROBE = `
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(1) fn main() { x[2] = fma(x[0], x[0], x[1]); }`;

/** Ranges of addresses, each a buffer of the device. */
class Addresses {
  #ranges = []; // { start, bytes, buffer }, by their start

  /** Adds a range of so many bytes, the first that is free; null if there is none. */
  add(bytes, buffer) {
    let start = FIRST_ADDRESS;
    let at = 0;
    for (; at < this.#ranges.length; at++) {
      const range = this.#ranges[at];
      if (range.start - start >= bytes) break;
      start = range.start + range.bytes;
    }
    if (start + bytes > MOST_ADDRESSES) return null;
    this.#ranges.splice(at, 0, { start, bytes, buffer });
    return start;
  }

  /** The range that an address is in, and its bytes from there on. */
  find(address) {
    let low = 0;
    let high = this.#ranges.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#ranges[middle].start <= address) low = middle;
      else high = middle - 1;
    }
    const range = this.#ranges[low];
    if (!range || address < range.start || address >= range.start + range.bytes) {
      throw new RelaxError(`address ${address} is of no memory of the device`);
    }
    return { buffer: range.buffer, offset: address - range.start };
  }

  /** Removes the range that begins at an address. */
  remove(address) {
    const at = this.#ranges.findIndex((range) => range.start === address);
    if (at < 0) throw new RelaxError(`address ${address} is of no memory of the device`);
    return this.#ranges.splice(at, 1)[0];
  }

  get all() {
    return this.#ranges;
  }
}

/** A device, its memory, and what it has still to do. */
export class WebGpu {
  #device;
  #addresses = new Addresses();
  #encoder = null;
  #launches = 0;
  #pass = null;
  #uniform;
  #words = new Uint32Array(UNIFORM_BYTES / 4);
  #temporary = []; // buffers to destroy after the next submission
  #failure = null;
  #layouts = [];
  #isFused = true;
  #isLost = false;
  #nothing; // what is bound for buffers without elements

  constructor(device) {
    this.#device = device;
    const { UNIFORM, STORAGE, COPY_DST } = GPUBufferUsage;
    this.#uniform = device.createBuffer({ size: UNIFORM_BYTES, usage: UNIFORM | COPY_DST });
    this.#nothing = device.createBuffer({ size: 16 * ALIGNMENT, usage: STORAGE });
    device.addEventListener("uncapturederror", ({ error }) => {
      const isMemory = error instanceof GPUOutOfMemoryError;
      this.#failure ??= isMemory
        ? new OutOfMemoryError("the device has no memory left; free tensors, or use a smaller model")
        : new RelaxError(`the device refuses: ${error.message}`);
    });
    device.lost.then(({ reason, message }) => {
      this.#isLost = true;
      if (reason === "destroyed") return;
      this.#failure ??= new RelaxError(`the device is lost: ${message}; load the module again`);
    });
  }

  /** Opens a device; a RelaxError says what is missing. */
  static async open(gpu = globalThis.navigator?.gpu) {
    if (!gpu) {
      const insecure = globalThis.isSecureContext === false;
      const why = insecure ? "the page is not served by https or from localhost" : "Chrome 113, Edge 113, Safari 26 and Firefox 141 have it";
      throw new RelaxError(`there is no WebGPU here: ${why}; modules for wasm32 need none`);
    }
    const adapter = await gpu.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) {
      throw new RelaxError("WebGPU finds no device: the driver is missing or on the browser's blocklist (chrome://gpu); modules for wasm32 need none");
    }
    const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
    const requiredLimits = { maxBufferSize, maxStorageBufferBindingSize };
    const device = await adapter.requestDevice({ requiredLimits }).catch((error) => {
      throw new RelaxError(`WebGPU does not open its device: ${error.message}; modules for wasm32 need none`);
    });
    const opened = new WebGpu(device);
    await opened.#probe();
    return opened;
  }

  async #probe() {
    const module = this.#device.createShaderModule({ code: PROBE });
    const pipeline = await this.#device.createComputePipelineAsync({ layout: "auto", compute: { module } });
    const address = this.allocate(12);
    this.upload(address, new Float32Array([1 + 2 ** -12, -(1 + 2 ** -11), 1]));
    const { buffer } = this.#addresses.find(address);
    const layout = pipeline.getBindGroupLayout(0);
    const pass = this.#encode().beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, this.#device.createBindGroup({ layout, entries: [{ binding: 0, resource: { buffer } }] }));
    pass.dispatchWorkgroups(1);
    pass.end();
    const [, , lost] = new Float32Array((await this.download(address, 12)).buffer);
    this.#isFused = lost !== 0;
    this.free(address);
  }

  /** Whether it does not work any more. */
  get isLost() {
    return this.#isLost;
  }

  get limits() {
    return this.#device.limits;
  }

  /** Compiles the code of a kernel; a RelaxError has the messages of the compiler. */
  async compile(code) {
    const made = typeof code === "string" ? JSON.parse(code) : code;
    const module = this.#device.createShaderModule({ code: made.code });
    const { messages } = await module.getCompilationInfo();
    const wrong = messages.filter(({ type }) => type === "error");
    if (wrong.length) {
      throw new RelaxError(wrong.map((m) => `${m.lineNum}:${m.linePos}: ${m.message}`).join("\n"));
    }
    const layout = this.#layout(made.bindings.length);
    const pipeline = await this.#device.createComputePipelineAsync({
      layout: this.#device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module, constants: made.code.includes("override is_fused") ? { is_fused: this.#isFused } : {} },
    });
    return { ...made, layout, pipeline };
  }

  /** The layout of so many buffers and the words behind them. */
  #layout(count) {
    const { COMPUTE } = GPUShaderStage;
    this.#layouts[count] ??= this.#device.createBindGroupLayout({
      entries: [
        ...Array.from({ length: count }, (_, binding) => ({ binding, visibility: COMPUTE, buffer: { type: "storage" } })),
        { binding: count, visibility: COMPUTE, buffer: { type: "uniform", hasDynamicOffset: true } },
      ],
    });
    return this.#layouts[count];
  }

  #buffer(bytes) {
    const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
    return this.#device.createBuffer({ size: bytes, usage: STORAGE | COPY_SRC | COPY_DST });
  }

  /** The address of memory of so many bytes; an OutOfMemoryError if the device cannot have it. */
  allocate(bytes) {
    const size = padded(Math.max(bytes, 1), ALIGNMENT);
    const { maxBufferSize } = this.#device.limits;
    if (size > maxBufferSize) {
      throw new OutOfMemoryError(`${bytes} bytes are more than a buffer of this device has, ${maxBufferSize}`);
    }
    const address = this.#addresses.add(size, this.#buffer(size));
    if (address === null) throw new OutOfMemoryError(`no addresses are left for ${bytes} bytes`);
    return address;
  }

  /** Frees memory once nothing uses it any more; returns its bytes. */
  free(address) {
    const { buffer, bytes } = this.#addresses.remove(address);
    this.#temporary.push(buffer);
    return bytes;
  }

  /** Copies bytes of a typed array to the device. */
  upload(address, data) {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    if (!bytes.length) return;
    this.submit();
    const { buffer, offset } = this.#addresses.find(address);
    const whole = bytes.length & ~3;
    if (whole) this.#device.queue.writeBuffer(buffer, offset, bytes, 0, whole);
    if (whole < bytes.length) {
      const last = new Uint8Array(4);
      last.set(bytes.subarray(whole));
      this.#device.queue.writeBuffer(buffer, offset + whole, last);
    }
  }

  /** A copy of bytes of the device, after all that it has to do; an error if that failed. */
  async download(address, bytes) {
    if (!bytes) {
      await this.synchronize();
      return new Uint8Array(0);
    }
    const { MAP_READ, COPY_DST } = GPUBufferUsage;
    const staging = this.#device.createBuffer({ size: padded(bytes), usage: MAP_READ | COPY_DST });
    const { buffer, offset } = this.#addresses.find(address);
    this.#encode().copyBufferToBuffer(buffer, offset, staging, 0, padded(bytes));
    this.submit();
    try {
      await staging.mapAsync(GPUMapMode.READ);
    } catch (error) {
      throw this.#failure ?? new RelaxError(`results cannot be read: ${error.message}`);
    }
    const result = new Uint8Array(staging.getMappedRange().slice(0, bytes));
    staging.destroy();
    this.#check();
    return result;
  }

  /** Copies within memory of the device that does not overlap. */
  copy(to, from, bytes) {
    if (bytes) this.#copy(this.#addresses.find(to), this.#addresses.find(from), bytes);
  }

  #copy(to, from, bytes) {
    let source = from;
    if (source.buffer === to.buffer) {
      source = { buffer: this.#scratch(padded(bytes)), offset: 0 };
      this.#encode().copyBufferToBuffer(from.buffer, from.offset, source.buffer, 0, padded(bytes));
    }
    this.#encode().copyBufferToBuffer(source.buffer, source.offset, to.buffer, to.offset, padded(bytes));
  }

  /** Memory until the next submission. */
  #scratch(bytes) {
    const buffer = this.#buffer(padded(bytes, ALIGNMENT));
    this.#temporary.push(buffer);
    return buffer;
  }

  #encode() {
    this.#pass?.end();
    this.#pass = null;
    return (this.#encoder ??= this.#device.createCommandEncoder());
  }

  /**
   * Launches a kernel on a grid: a buffer is { address, bytes }, a scalar a number, or a bigint of
   * its bits. A RelaxError tells what does not fit.
   */
  launch(kernel, grid, values) {
    this.#check();
    this.#checkIndices(kernel, grid, values);
    if (this.#launches === LAUNCHES) this.submit();
    const begins = new Map();
    const { entries, after } = this.#entries(kernel, values, begins);
    const words = [0];
    for (const [argument, word] of kernel.words) {
      const { scalar } = kernel.arguments[argument];
      words.push(word === undefined ? begins.get(argument) : wordsOf(scalar, values[argument])[word]);
    }
    const offset = ALIGNMENT * this.#launches++;
    if (words.length > ALIGNMENT / 4) throw new RelaxError(`a kernel takes ${words.length} words`);
    this.#words.set(words, offset / 4);
    entries.push({ binding: entries.length, resource: { buffer: this.#uniform, size: padded(4 * words.length, 16) } });
    this.#encoder ??= this.#device.createCommandEncoder();
    this.#pass ??= this.#encoder.beginComputePass();
    this.#pass.setPipeline(kernel.pipeline);
    this.#pass.setBindGroup(0, this.#device.createBindGroup({ layout: kernel.layout, entries }), [offset]);
    this.#pass.dispatchWorkgroups(...grid);
    for (const { to, from, bytes } of after) this.#copy(to, from, bytes);
  }

  #checkIndices(kernel, grid, values) {
    kernel.arguments.forEach(({ scalar, bytes }, i) => {
      const count = bytes ? values[i].bytes / bytes : scalar === "index" ? Math.abs(Number(values[i])) : 0;
      if (count >= MOST_INDEX) throw new RelaxError(`${count} elements are more than indices of 32 bits count`);
    });
    const found = evaluated(kernel.steps, values, grid);
    const most = Math.max(0, ...kernel.checks.map((step) => found[step]));
    if (most >= MOST_INDEX) {
      throw new RelaxError(`indices up to ${most} are more than indices of 32 bits; use smaller tensors`);
    }
  }

  /** What is bound, and the copies to make after the launch. */
  #entries(kernel, values, begins) {
    const bound = kernel.bindings.map((joined) => {
      const parts = joined.map((i) => ({ argument: i, ...kernel.arguments[i], size: values[i].bytes, address: Number(values[i].address) }));
      return parts.length === 1 ? this.#single(parts[0]) : this.#joined(parts, begins);
    });
    this.#separate(bound);
    const entries = bound.map(({ buffer, offset, size }, binding) => ({
      binding,
      resource: size ? { buffer, offset, size } : { buffer: this.#nothing, offset: ALIGNMENT * binding, size: 16 },
    }));
    return { entries, after: bound.flatMap(({ after }) => after) };
  }

  /** A buffer as it is, or a copy if it does not begin where one may. */
  #single({ address, size, written }) {
    if (!size) return { size: 0, after: [] };
    const at = this.#addresses.find(address);
    const own = { ...at, size: padded(size), written, after: [] };
    return at.offset % ALIGNMENT ? this.#copied(own) : own;
  }

  /** A copy of what is bound, copied back after the launch if it is written. */
  #copied(own) {
    const { buffer, offset, size, written } = own;
    const copy = { buffer: this.#scratch(size), offset: 0 };
    this.#copy(copy, { buffer, offset }, size);
    const after = written ? [{ to: { buffer, offset }, from: copy, bytes: size }] : [];
    return { ...copy, size, written, after };
  }

  /** Buffers in memory of their own, one after the other; `begins` are their first elements. */
  #joined(parts, begins) {
    let size = 0;
    const starts = parts.map((part) => {
      const start = size;
      begins.set(part.argument, start / part.bytes);
      size += padded(part.size, 8);
      return start;
    });
    const buffer = this.#scratch(Math.max(size, 16));
    const after = [];
    parts.forEach((part, i) => {
      if (!part.size) return;
      const [at, own] = [this.#addresses.find(part.address), { buffer, offset: starts[i] }];
      this.#copy(own, at, part.size);
      if (part.written) after.push({ to: at, from: own, bytes: part.size });
    });
    return { buffer, offset: 0, size: Math.max(size, 16), written: parts[0].written, after };
  }

  /** Copies what is only read where it overlaps something else that is bound. */
  #separate(bound) {
    const overlap = (a, b) => a.size && b.size && a.buffer === b.buffer && a.offset < b.offset + b.size && b.offset < a.offset + a.size;
    for (let i = 0; i < bound.length; i++) {
      for (let j = 0; j < i; j++) {
        if (!overlap(bound[i], bound[j])) continue;
        const read = [i, j].find((k) => !bound[k].written);
        if (read === undefined) throw new RelaxError("a kernel stores to memory that overlaps");
        bound[read] = this.#copied(bound[read]);
      }
    }
  }

  /** Submits what is encoded. */
  submit() {
    if (this.#encoder) {
      this.#pass?.end();
      if (this.#launches) {
        this.#device.queue.writeBuffer(this.#uniform, 0, this.#words, 0, (this.#launches * ALIGNMENT) / 4);
      }
      this.#device.queue.submit([this.#encoder.finish()]);
      this.#encoder = this.#pass = null;
      this.#launches = 0;
    }
    for (const buffer of this.#temporary) buffer.destroy();
    this.#temporary = [];
  }

  /** Throws what failed so far, if anything did. */
  async checked() {
    this.#check();
  }

  /** Waits until all is done; an error tells what failed. */
  async synchronize() {
    this.submit();
    await this.#device.queue.onSubmittedWorkDone();
    this.#check();
  }

  #check() {
    if (this.#failure) throw this.#failure;
  }

  /** Frees all memory. */
  close() {
    for (const { buffer } of this.#addresses.all) buffer.destroy();
    this.#device.destroy();
  }
}

const DEVICE = 15; // DLPack's WebGPU
const KERNEL_BYTES = 48;
const suspends = typeof WebAssembly.Suspending === "function";

/** A tensor in the memory of a device, which calls take without a copy, until it is freed. */
export class PlacedOnDevice extends Placed {
  #gpu;
  #pending; // what is written, until it is all

  constructor(module, gpu, address, dims, dtype) {
    super(module, address, dims, dtype);
    this.device = DEVICE;
    this.#gpu = gpu;
  }

  /** Writes bytes at an offset: all of them, in order, in several calls. */
  write(bytes, offset = 0) {
    if (!this.address) throw new RelaxError("the tensor is freed");
    const size = byteLength(this.dims, this.dtype);
    if (offset === 0 && bytes.length === size) {
      this.#gpu.upload(this.address, bytes);
      return;
    }
    if (offset === 0) this.#pending = new Uint8Array(size);
    this.#pending.set(bytes, offset);
    if (offset + bytes.length < size) return;
    this.#gpu.upload(this.address, this.#pending);
    this.#pending = undefined;
  }

  /** Copies the elements, in so many parts, to the beginnings of as many parts of a larger tensor. */
  spread(to, parts) {
    const [narrow, wide] = [this, to].map(({ dims, dtype }) => byteLength(dims, dtype) / parts);
    for (let i = 0; i < parts; i++) this.#gpu.copy(to.address + i * wide, this.address + i * narrow, narrow);
  }

  bytes() {
    throw new RelaxError("the tensor is on a device; read() copies it");
  }

  /** A promised copy. */
  async read() {
    if (!this.address) throw new RelaxError("the tensor is freed");
    const Elements = ELEMENTS[this.dtype][2];
    const count = this.dims.reduce((product, dim) => product * dim, 1);
    const bytes = await this.#gpu.download(this.address, count * Elements.BYTES_PER_ELEMENT);
    return new Tensor(new Elements(bytes.buffer), this.dims, this.dtype);
  }

  free() {
    if (!this.address) throw new RelaxError("the tensor is freed");
    this.module._exports.rx_tensor_free(this.address);
    this.address = 0;
  }
}

/**
 * Loads a module for wasm32@webgpu, given as for `load` of relax.js. `gpu` is a device that is open,
 * `progress` gets the counts of kernels that are compiled and of all.
 */
export async function loadOnWebGpu(source, { print = printLine, gpu = undefined, progress = () => {} } = {}) {
  const compiled = await compiledModule(source);
  const device = gpu ?? (await WebGpu.open());
  const host = new Host(device);
  let module;
  const relax = { ...hostFunctions(print, () => module), ...host.functions() };
  const instance = await WebAssembly.instantiate(compiled, { relax });
  await host.start(instance.exports, progress);
  module = new DeviceModule(instance, device);
  return module;
}

/** What a module asks of the device: device/webgpu.c. */
class Host {
  #gpu;
  #exports;
  #kernels = [];

  constructor(gpu) {
    this.#gpu = gpu;
  }

  /** The functions that the module imports. */
  functions() {
    const told = (action) => (...values) => {
      const [text, room] = values.splice(-2);
      try {
        action(...values);
      } catch (error) {
        return this.#tell(error, text, room);
      }
      return 0;
    };
    const bytes = (address, count) => new Uint8Array(this.#exports.memory.buffer, address >>> 0, Number(count));
    const download = async (to, from, count, text, room) => {
      try {
        const data = await this.#gpu.download(from >>> 0, Number(count));
        bytes(to, count).set(data);
      } catch (error) {
        return this.#tell(error, text, room);
      }
      return 0;
    };
    const noDownload = told(() => {
      throw new RelaxError(
        "the host needs an element of a tensor, for which the browser must suspend WebAssembly (JSPI): Chrome 137 and later do",
      );
    });
    return {
      device_alloc: (count) => this.#allocated(Number(count)),
      device_free: (address) => BigInt(this.#gpu.free(address >>> 0)),
      device_upload: told((to, from, count) => this.#gpu.upload(to >>> 0, bytes(from, count))),
      device_copy: told((to, from, count) => this.#gpu.copy(to >>> 0, from >>> 0, Number(count))),
      device_launch: told((kernel, grid, words) => this.#launch(this.#kernels[kernel], grid >>> 0, words >>> 0)),
      device_submit: told(() => this.#gpu.submit()),
      device_download: suspends ? new WebAssembly.Suspending(download) : noDownload,
    };
  }

  /** Compiles the kernels of a module. */
  async start(exports, progress) {
    this.#exports = exports;
    if (typeof exports.rx_webgpu_kernels !== "function") {
      throw new RelaxError("the module is not one that relax-mlir compiled for wasm32@webgpu");
    }
    const view = new DataView(exports.memory.buffer);
    const table = exports.rx_webgpu_kernels() >>> 0;
    const count = exports.rx_webgpu_count();
    let done = 0;
    const compile = async (at) => {
      const [address, length] = [view.getUint32(at + 8, true), Number(view.getBigInt64(at + 16, true))];
      const code = new TextDecoder().decode(new Uint8Array(exports.memory.buffer, address, length));
      const kernel = await this.#gpu.compile(code);
      progress(++done, count);
      return kernel;
    };
    this.#kernels = await Promise.all(Array.from({ length: count }, (_, i) => compile(table + KERNEL_BYTES * i)));
  }

  #allocated(count) {
    try {
      return this.#gpu.allocate(count) | 0;
    } catch (error) {
      if (error instanceof OutOfMemoryError) return 0;
      throw error;
    }
  }

  #launch(kernel, grid, words) {
    const view = new DataView(this.#exports.memory.buffer);
    const extents = [0, 1, 2].map((axis) => view.getInt32(grid + 4 * axis, true));
    let at = words;
    const next = () => view.getBigInt64((at += 8) - 8, true);
    const values = kernel.arguments.map(({ scalar }) =>
      scalar ? next() : { address: Number(BigInt.asUintN(32, next())), bytes: Number(next()) },
    );
    this.#gpu.launch(kernel, extents, values);
  }

  /** Writes the text of an error; nonzero. */
  #tell(error, text, room) {
    const bytes = new TextEncoder().encode(error.message).subarray(0, room - 1);
    const to = new Uint8Array(this.#exports.memory.buffer, text >>> 0, room);
    to.set(bytes);
    to[bytes.length] = 0;
    return 1;
  }
}

/** A loaded module whose tensors are on a device. Its calls are made one after another. */
export class DeviceModule extends Module {
  #gpu;
  #sent = [];
  #last = Promise.resolve();
  #enterSuspending;

  constructor(instance, gpu) {
    super(instance);
    this.#gpu = gpu;
    if (suspends) this.#enterSuspending = WebAssembly.promising(this._exports.rx_call_on);
  }

  get gpu() {
    return this.#gpu;
  }

  /** Calls a function; its promised result, an array of several, or undefined. */
  call(name, ...values) {
    return this.#inTurn(() => this.#run(name, values, false));
  }

  /** As `call`, but results that are tensors stay on the device. */
  callOnDevice(name, ...values) {
    return this.#inTurn(() => this.#run(name, values, true));
  }

  /** Copies a tensor to the device. */
  place(value, dtype = undefined) {
    const tensor = toTensor(value, { kind: "tensor", dtype: dtype ?? value.dtype });
    const address = this.#allocate(tensor.data.byteLength, "a tensor");
    this.#gpu.upload(address, tensor.data);
    return new PlacedOnDevice(this, this.#gpu, address, tensor.dims, tensor.dtype);
  }

  /** A tensor of zeros on the device. */
  reserve(dims, dtype) {
    const address = this.#allocate(byteLength(dims, dtype), "a tensor");
    return new PlacedOnDevice(this, this.#gpu, address, [...dims], dtype);
  }

  _send(bytes, kind, label) {
    if (kind !== "tensor") return super._send(bytes, kind, label);
    const address = this.#allocate(bytes.length, label);
    this.#sent.push(address);
    this.#gpu.upload(address, bytes);
    return [address, DEVICE];
  }

  #allocate(bytes, label) {
    const address = this._exports.rx_tensor_new(BigInt(bytes)) >>> 0;
    if (!address) throw new OutOfMemoryError(`out of memory on the device: ${label}, ${bytes} bytes`);
    return address;
  }

  #inTurn(run) {
    const made = this.#last.then(run);
    this.#last = made.catch(() => {});
    return made;
  }

  async #run(name, values, stays) {
    const signature = this._signature(name, values);
    const fresh = [];
    const kept = new Set();
    try {
      const prepared = this._prepare(name, signature, values, fresh);
      await this.#enter(prepared);
      for (const [index, { tensor, address }] of prepared.tensors.entries()) {
        if (!signature.arguments[index].inout || !(tensor instanceof Tensor)) continue;
        const { byteLength } = tensor.data;
        const isOnDevice = locatedKind(signature.arguments[index]) === "tensor";
        const bytes = isOnDevice ? await this.#gpu.download(address, byteLength) : this._bytes(address, byteLength);
        bytesOf(tensor.data).set(bytes);
      }
      const made = [];
      for (const [index, result] of signature.results.entries()) {
        if (result.alias !== null) made.push(values[result.alias]);
        else if (locatedKind(result) !== "tensor") made.push(this._take(fresh[index], result));
        else {
          const { address, dims } = this._result(fresh[index]);
          const placed = new PlacedOnDevice(this, this.#gpu, address, dims, result.dtype);
          if (stays) kept.add(fresh[index]);
          made.push(stays ? placed : await placed.read());
        }
      }
      await this.#gpu.checked();
      return made.length > 1 ? made : made[0];
    } finally {
      fresh.forEach((address, index) => {
        if (kept.has(address)) return;
        const isTensor = locatedKind(signature.results[index]) === "tensor";
        (isTensor ? this._exports.rx_tensor_release : this._exports.rx_release)(address);
      });
      for (const address of this.#sent.splice(0)) this._exports.rx_tensor_free(address);
      this._free();
    }
  }

  async #enter(prepared) {
    if (!this.#enterSuspending) return this._enter(prepared);
    const stack = this._exports.__stack_pointer.value;
    let status, trap;
    try {
      status = await this.#enterSuspending(prepared.call, 0, prepared.rooms);
    } catch (error) {
      trap = error;
      status = this._recovered(error, stack);
    }
    this._check(status, trap);
  }
}
