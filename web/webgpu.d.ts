/** Types of webgpu.js. */

import type { Argument, Elements, ElementType, Module, Placed, Result, Tensor } from "./relax.js";

/** A tensor on a device; `read` promises a copy, and there are no `bytes` to look at. */
export interface PlacedOnDevice extends Omit<Placed, "read" | "bytes"> {
  read(): Promise<Tensor>;
}

type Given = Argument | PlacedOnDevice;

/** A module whose tensors are on a device; its calls are made one after another. */
export interface DeviceModule extends Pick<Module, "functions" | "metadata" | "counters"> {
  readonly gpu: WebGpu;
  call(name: string, ...values: Given[]): Promise<Result | Result[] | undefined>;
  callOnDevice(name: string, ...values: Given[]): Promise<Result | PlacedOnDevice | (Result | PlacedOnDevice)[] | undefined>;
  place(value: Tensor | Elements, dtype?: ElementType): PlacedOnDevice;
  reserve(dims: readonly number[], dtype: ElementType): PlacedOnDevice;
}

/** A device of WebGPU. */
export class WebGpu {
  static open(gpu?: unknown): Promise<WebGpu>;
  readonly isLost: boolean;
  synchronize(): Promise<void>;
  close(): void;
}

export function loadOnWebGpu(
  source: BufferSource | Response | WebAssembly.Module | Promise<BufferSource | Response | WebAssembly.Module>,
  options?: {
    print?: (text: string) => void;
    gpu?: WebGpu;
    progress?: (compiled: number, total: number) => void;
  },
): Promise<DeviceModule>;
