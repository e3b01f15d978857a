/* The runtime of compiled modules: what a shared object offers to its host, and what generated code
 * calls.
 *
 * The sources are compiled to LLVM bitcode when the package is built and linked into every compiled
 * module, so a shared object needs libc and threads only. Two parts follow: functions a host
 * program calls (RX_API, exported by every shared object) and functions that generated code calls
 * (hidden).
 *
 * A host program in C:
 *
 *     RxContext *context = rx_create();
 *     float x[6] = {0}, y[6];
 *     int64_t dims[2] = {2, 3};
 *     DLTensor arg = {x, {1, 0}, 2, {2, 32, 1}, dims, NULL, 0};
 *     // Or data = NULL and room for two dims as shape: then rx_free what the call allocates.
 *     DLTensor result = {y, {1, 0}, 2, {2, 32, 1}, dims, NULL, 0};
 *     RxCall call = {context, rx_fn_main, &arg, &result, 1, 1, RX_NOTHING, 0, {0}};
 *     if (rx_call(&call)) puts(rx_last_error(context));
 *     rx_destroy(context);
 *
 * Each graph function @f is exported as
 *
 *     int32_t rx_fn_f(RxContext *, const DLTensor *args, int32_t num_args, DLTensor *results,
 *                     int32_t num_results);
 *
 * and returns 0, or nonzero with a text in the context. Called by itself, without rx_call, it ends
 * the process when a kernel runs out of memory, and one context serves one such call at a time.
 *
 * rx_call may be called from any number of threads, with one context or several. All modules of a
 * process share one pool of threads, which are started when a loop first wants them, and kept. A
 * child that is forked may call what its parent called, also while other threads of the parent are
 * in calls.
 */
#ifndef RELAX_RUNTIME_H
#define RELAX_RUNTIME_H

#include <stdint.h>

#define RX_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Tensors, laid out as in DLPack 1.0
 * -------------------------------------------------------------------- */

typedef struct {
  int32_t type; /* 1 is CPU memory */
  int32_t id;
} DLDevice;

typedef struct {
  uint8_t code; /* RX_INT .. RX_BOOL */
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

enum { RX_MAX_RANK = 32 };

enum { RX_INT = 0, RX_UINT = 1, RX_FLOAT = 2, RX_BFLOAT = 4, RX_COMPLEX = 5, RX_BOOL = 6 };

typedef struct {
  void* data; /* aligned to its element at least */
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: row-major without gaps, the only layout accepted */
  uint64_t byte_offset;
} DLTensor;

typedef struct RxContext RxContext;

/* ---- For host programs
 * -------------------------------------------------------------------------------------- */

RX_API RxContext* rx_create(void); /* NULL when out of memory */

/* Not while a call runs. The last context of the process takes the calling thread's scratch memory
 * along; other threads free theirs when they end. */
RX_API void rx_destroy(RxContext* context);

/* The text of the calling thread's last call, "" if it succeeded; valid until its next call. */
RX_API const char* rx_last_error(RxContext* context);

enum { RX_NOTHING, RX_ARGUMENTS_FIT, RX_SYMBOLS_KEPT };
enum { RX_KEPT_SYMBOLS = 6 };

/* A call that can be made again. */
typedef int32_t (*RxEntry)(RxContext*, const DLTensor* args, int32_t num_args, DLTensor* results,
                           int32_t num_results);
typedef struct {
  RxContext* context;
  RxEntry entry; /* rx_fn_<name> */
  DLTensor* args;
  DLTensor* results;
  int32_t num_args, num_results;
  /* What a call that succeeded knows, so that the next one does not look again at what cannot have
   * changed. To be set to RX_NOTHING when a descriptor in `args` changes. */
  int32_t known;
  uint32_t lock; /* 0 at first: a call that two threads make is made by one after the other */
  int64_t symbols[RX_KEPT_SYMBOLS];
} RxCall;

enum { RX_OK, RX_ERROR, RX_OUT_OF_MEMORY };

/* Makes the call; RX_OK, or another value with a text in the context. */
RX_API int32_t rx_call(RxCall* call);

/* A new result, `data` NULL at first. Its owner is whoever has this, from the moment that it is
 * allocated, also if the call fails later, and frees it by rx_release. */
typedef struct {
  void* data;
  int64_t ndim;
  int64_t dims[]; /* room for as many as the metadata says, RX_MAX_RANK if it does not */
} RxFresh;
RX_API void rx_release(RxFresh* fresh);

/* Makes the call on `threads` threads; 0: those of the context. A result i with fresh[i] is
 * allocated and described there, unless it is an argument updated in place, and results[i] is not
 * looked at. */
RX_API int32_t rx_call_on(RxCall* call, int32_t threads, RxFresh* const* fresh);

/* Exchanges args[index] and `tensor` when no thread makes the call. */
RX_API void rx_exchange_argument(RxCall* call, int32_t index, DLTensor* tensor);

/* Threads of later calls with a context, the caller's included; 0: those of the module. */
RX_API void rx_set_context_threads(RxContext* context, int32_t threads);

/* Threads of the module's calls; 0 or less: $RELAX_NUM_THREADS, else every CPU of the process.
 * rx_get_threads is 0 where the variable is no number of 1 or more; calls fail then. More than 256
 * are 256, and a loop gets those that other calls do not use. */
RX_API void rx_set_threads(int32_t threads);
RX_API int32_t rx_get_threads(void);

enum { RX_ALLOCATIONS, RX_KERNELS, RX_PARALLEL_REGIONS, RX_ARENA_BYTES, RX_NUM_COUNTERS };
RX_API int64_t rx_counter(int32_t which); /* -1 for an unknown counter */

/* Spans of time: one per call of a kernel, in the order of their ends, from CLOCK_MONOTONIC in
 * nanoseconds. `site` counts the kernel calls of a host function, which the metadata describes,
 * `call` the calls since rx_profile. Recording starts anew with rx_profile and stops when
 * `capacity` spans are full; 0 turns it off. Nonzero when out of memory. */
typedef struct {
  int32_t site, call;
  int64_t begin, end;
} RxSpan;
RX_API int32_t rx_profile(int64_t capacity);
RX_API int64_t rx_spans(RxSpan* copies, int64_t capacity); /* the number; copies the first */

RX_API void rx_free(void* data); /* releases a result that the runtime allocated */

/* Defined by the compiled module, not by the runtime: JSON text
 *   {"functions": {"main": {
 *      "arguments": [{"name": "x", "kind": "tensor", "dtype": "f32", "dims": ["n", 4],
 *                     "inout": false}],
 *      "results": [{"kind": "tensor", "dtype": "f32", "dims": ["n", 4], "alias": null}],
 *      "facts": ["n <= 2048"]}},
 *    "libraries": [{"function": "openblas.sgemm", "c_symbol": "cblas_sgemm",
 *                   "providers": ["libopenblas.so.0"], "slot": "rx_lib_openblas_sgemm"}], ...}
 * kind "shape": a shape value. dtype: MLIR's name of the element type. dims null: rank not known;
 * one of them null: dim not known. alias: index of the inout argument that the result is. slot: an
 * exported pointer variable that the loader sets to the function's address. */
RX_API const char* rx_metadata(void);

/* ---- Tables that generated code passes
 * ---------------------------------------------------------------------- */

/* An expression in postfix order: pairs (opcode, operand), the operand of an operator being 0. It
 * is computed exactly; symbols and dims are integers of [0, 2^63). */
enum { RX_CONST, RX_SYMBOL, RX_ADD, RX_SUB, RX_MUL, RX_FLOORDIV, RX_MOD, RX_MIN, RX_MAX };

typedef struct {
  int64_t count; /* number of int64s in the program; 0: the dim is not checked */
  const int64_t* program;
} RxDim;

enum { RX_TENSOR = 0, RX_SHAPE = 1 };

typedef struct {
  const char* name;
  int32_t kind; /* RX_SHAPE: a 1-D int64 tensor whose values are `dims` */
  int32_t code, bits;
  int32_t ndim; /* -1: any rank, dims not checked */
  const RxDim* dims;
} RxArg;

enum { RX_EQ, RX_LE, RX_LT, RX_GE, RX_GT, RX_NE };

typedef struct {
  RxDim lhs, rhs;
  int32_t relation; /* RX_EQ .. RX_NE */
  int32_t pad;
  const char* text; /* the fact as the user wrote it */
} RxFact;

typedef struct {
  const char* name;
  int32_t num_args, num_results, num_symbols, num_facts;
  const RxArg* args;
  const char* const* symbols;
  const RxFact* facts;
  int64_t num_open;
  const int64_t* open; /* indices of the arguments whose dims or values mention symbols */
  int32_t uses_tiles;  /* kernels use the tile registers of AMX */
  int32_t is_cast;     /* a match_cast of the only argument, where symbols may have values already */
} RxFunction;

enum { RX_INTEGER, RX_DIMENSION, RX_BYTES };

typedef struct {
  RxDim size;
  int32_t kind; /* RX_INTEGER: any; RX_DIMENSION: not negative; RX_BYTES: of memory */
  int32_t pad;
} RxSize;

/* Expressions that a function computes in 64 bits, each step of which has to fit. */
typedef struct {
  const char* name; /* of the function */
  int32_t num_sizes, num_symbols;
  const RxSize* sizes;
  const char* const* symbols;
} RxSizes;

/* ---- For generated code
 * -------------------------------------------------------------------------------------- */

/* Checks number, device, dtype, rank, layout, dims and facts of the arguments and writes the value
 * of each symbol. A dim that is one unbound symbol binds it; `a*s + b` with a > 0 and one unbound
 * symbol binds it by exact division; other dims are compared, without wrapping. A symbol that no
 * argument mentions gets -1, and facts on it are left to the caller. */
int32_t rx_bind(RxContext* context, const RxFunction* info, const DLTensor* args, int32_t num_args,
                int32_t num_results, int64_t* symbols);

/* Memory of the context's arena, 64-byte aligned, until rx_bind or a release to an earlier mark.
 * NULL: no memory. */
void* rx_arena(RxContext* context, int64_t bytes);

/* What rx_arena gives from now on ends with the release. */
void* rx_arena_mark(RxContext* context);
void rx_arena_release(RxContext* context, void* mark);

/* Memory for a result: the caller's buffer, checked, or a new one described in results[index]. NULL
 * on error. */
void* rx_result(RxContext* context, DLTensor* results, int32_t index, int32_t code, int32_t bits,
                int32_t ndim, const int64_t* dims);

/* Describes a result that is an argument updated in place; the caller must not rx_free it. Nonzero
 * on error. */
int32_t rx_result_alias(RxContext* context, DLTensor* results, int32_t index,
                        const DLTensor* argument);

/* Binds, as rx_bind does, those symbols of a cast that are -1 by the dims of its tensor, and checks
 * the other dims and the facts. Nonzero on error. */
int32_t rx_match_cast(RxContext* context, const RxFunction* info, int64_t* dims, int64_t* symbols);

/* Fails unless one of the facts holds, which `info->name` requires. */
int32_t rx_require(RxContext* context, const RxFunction* info, const int64_t* symbols);

/* Sets the error text to which of the sizes cannot be; at least one of them cannot. */
void rx_refuse_sizes(RxContext* context, const RxSizes* info, const int64_t* symbols);

/* Sets the error text; returns 1, so that generated code can return it. */
int32_t rx_fail(RxContext* context, const char* message);

/* Adds to the counter of kernels; one call per function is enough. */
void rx_count_kernels(int64_t number);

/* Around each call of a kernel; they do nothing unless rx_profile asked for spans. */
void rx_span_begin(int32_t site);
void rx_span_end(void);

/* Runs task(data, begin, end) over disjoint ranges that cover [0, count), on several threads if
 * count > grain. Returns when all are done. A call from inside a task runs in place, as does one
 * whose threads all are in use. */
typedef void (*RxTask)(void* data, int64_t begin, int64_t end);
void rx_parallel_for(RxTask task, void* data, int64_t count, int64_t grain);

/* The calling thread's scratch stack, 64-byte aligned, freed in reverse order. Memory is kept for
 * the next push. Out of memory, the call is given up: kernels cannot report errors. */
void* rx_scratch_push(int64_t bytes);
void rx_scratch_pop(void* data);

#ifdef __cplusplus
}
#endif
#endif
