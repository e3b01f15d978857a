/** Types of llm.js, tokenizer.js and sampler.js. */

import type { Module, Placed } from "./relax.js";

export { OutOfMemoryError, RelaxError } from "./relax.js";

export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

export interface SamplerOptions {
  temperature?: number;
  topK?: number;
  topP?: number;
  repetitionPenalty?: number;
  seed?: number;
}

export interface GenerateOptions extends SamplerOptions {
  maxTokens?: number | null;
  stop?: string | readonly string[];
  raw?: boolean;
  session?: Session;
  signal?: AbortSignal;
}

export interface Statistics {
  promptTokens: number;
  reusedTokens: number;
  promptSeconds: number;
  steps: number;
  stepSeconds: number;
}

export class Sampler {
  constructor(options?: SamplerOptions);
  sample(logits: Float32Array, history?: readonly number[]): number;
}

export class Tokenizer {
  constructor(data: object);
  readonly size: number;
  encode(text: string, options?: { addSpecial?: boolean }): number[];
  decode(ids: readonly number[], options?: { skipSpecial?: boolean }): string;
  stream(options?: { skipSpecial?: boolean }): { push(id: number): string; flush(): string };
  idOf(text: string): number | undefined;
  specialId(text: string): number | undefined;
}

export class Session {
  readonly capacity: number;
  readonly tokens: readonly number[];
  append(ids: readonly number[]): Promise<Float32Array>;
  truncate(length: number): void;
  free(): void;
}

export class Generation implements AsyncIterable<string> {
  readonly session: Session;
  readonly tokens: readonly number[];
  readonly stopReason?: "end" | "stop" | "length" | "context" | "abort";
  readonly statistics: Statistics;
  [Symbol.asyncIterator](): AsyncIterator<string>;
  text(onText?: (piece: string) => void): Promise<string>;
}

export class LanguageModel {
  readonly module: Module;
  readonly parameters: readonly Placed[];
  readonly tokenizer: Tokenizer;
  readonly context: number;
  readonly vocabSize: number;
  readonly endIds: readonly number[];
  readonly name: string;
  readonly target: string;
  session(capacity?: number): Session;
  encode(prompt: string | readonly Message[], options?: { raw?: boolean }): number[];
  generate(prompt: string | readonly Message[], options?: GenerateOptions): Generation;
}

export interface LoadOptions {
  progress?: (state: { loaded: number; total: number }) => void;
  read?: (name: string, sha256?: string) => AsyncIterable<Uint8Array>;
  device?: "webgpu" | "wasm";
  print?: (text: string) => void;
  threads?: number;
  maxBytes?: number;
}

export function load(folder?: string | URL, options?: LoadOptions): Promise<LanguageModel>;
