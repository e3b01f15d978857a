/** Types of relax.js. */

export type ElementType =
  | "f64" | "f32" | "f16" | "bf16" | "f8E4M3FN" | "f8E4M3FNUZ" | "f8E5M2" | "f8E5M2FNUZ"
  | "i64" | "i32" | "i16" | "i8" | "ui64" | "ui32" | "ui16" | "ui8" | "i1" | "index";

export type Elements =
  | Float64Array | Float32Array | BigInt64Array | BigUint64Array
  | Int32Array | Int16Array | Int8Array | Uint32Array | Uint16Array | Uint8Array;

export class RelaxError extends Error {}
export class OutOfMemoryError extends RelaxError {}

export class Tensor {
  constructor(data: Elements, dims?: readonly number[], dtype?: ElementType);
  readonly data: Elements;
  readonly dims: number[];
  readonly dtype?: ElementType;
}

export class Placed {
  readonly module: Module;
  readonly dims: readonly number[];
  readonly dtype: ElementType;
  read(): Tensor;
  bytes(): Uint8Array;
  write(bytes: Uint8Array, offset?: number): void;
  spread(to: Placed, parts: number): void;
  free(): void;
}

/** Tensors, typed arrays as tensors of one dim, numbers for scalars, integers for shapes. */
export type Argument = Tensor | Placed | Elements | number | bigint | boolean | readonly number[];
export type Result = Tensor | Placed | number | bigint | number[];

export interface Described {
  kind: "tensor" | "shape" | "scalar" | "host_object";
  dtype: ElementType;
  dims: (number | string | null)[] | null;
  /** The module has a device, but this tensor is on the host. */
  on_host?: boolean;
}

export interface Signature {
  arguments: (Described & { name: string; inout: boolean })[];
  results: (Described & { alias: number | null })[];
  facts: string[];
}

export class Module {
  readonly functions: Record<string, Signature>;
  readonly metadata: { functions: Record<string, Signature>; target: string };
  call(name: string, ...values: Argument[]): Result | Result[] | undefined;
  place(value: Tensor | Elements, dtype?: ElementType): Placed;
  reserve(dims: readonly number[], dtype: ElementType): Placed;
  close(): void;
  counters(): Record<"allocations" | "kernels" | "parallel_regions" | "arena_bytes", number>;
}

export function load(
  source: BufferSource | Response | WebAssembly.Module | Promise<BufferSource | Response | WebAssembly.Module>,
  options?: { print?: (text: string) => void; threads?: number; maxBytes?: number },
): Promise<Module>;
