/* The runtime of compiled modules: the interface of a shared object to its host program, and that
 * to generated code.
 *
 * The sources are compiled to LLVM bitcode when the package is built, and linked into every
 * compiled module, so a shared object needs only libc and threads. RX_API marks the functions that
 * a host program calls, which every shared object exports; the functions that generated code calls
 * are hidden.
 *
 * A host program in C:
 *
 *     RxContext *context = rx_create();
 *     float x[6] = {0}, y[6];
 *     int64_t dims[2] = {2, 3};
 *     DLTensor arg = {x, {1, 0}, 2, {2, 32, 1}, dims, NULL, 0};
 *     // Or data = NULL and space for two dims as shape: then rx_free what the call allocates.
 *     DLTensor result = {y, {1, 0}, 2, {2, 32, 1}, dims, NULL, 0};
 *     static RxCall call; // zeros, but for what follows
 *     call.context = context, call.entry = rx_fn_main;
 *     call.args = &arg, call.num_args = 1;
 *     call.results = &result, call.num_results = 1;
 *     if (rx_call(&call)) puts(rx_last_error(context));
 *     rx_destroy(context);
 *
 * Each graph function @f is exported as
 *
 *     int32_t rx_fn_f(RxContext *, const DLTensor *args, int32_t num_args, DLTensor *results,
 *                     int32_t num_results);
 *
 * and returns 0, or nonzero with a message in the context. Called directly, without rx_call, it
 * aborts the process when a kernel runs out of memory, and a context serves one such call at a
 * time.
 *
 * rx_call may be called from any number of threads, with one context or several. All modules of a
 * process share one thread pool, whose threads start when a loop first needs them, and are reused.
 * A forked child may make the calls of its parent, even if other threads of the parent were in
 * calls.
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
enum { RX_E4M3FN = 10, RX_E4M3FNUZ = 11, RX_E5M2 = 12, RX_E5M2FNUZ = 13 }; /* floats of 8 bits */

typedef struct {
  void* data; /* aligned to its element at least */
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides; /* in elements; NULL: contiguous row-major, the only layout accepted */
  uint64_t byte_offset;
} DLTensor;

typedef struct RxContext RxContext;

/* ---- For host programs
 * -------------------------------------------------------------------------------------- */

/* NULL when out of memory, or if a file of constants beside the shared object is missing or wrong:
 * rx_last_error(NULL) tells. */
RX_API RxContext* rx_create(void);

/* Not while a call runs. With the last context of the process, the calling thread's scratch memory
 * is freed; other threads free theirs when they end. */
RX_API void rx_destroy(RxContext* context);

/* The error message of the calling thread's last call, "" if it succeeded; valid until its next
 * call. */
RX_API const char* rx_last_error(RxContext* context);

enum { RX_NOTHING, RX_ARGUMENTS_FIT, RX_SYMBOLS_KNOWN };
enum { RX_MAX_KNOWN_SYMBOLS = 6 };

/* A call that can be made again. Members that a host program does not set are initially 0. */
typedef int32_t (*RxEntry)(RxContext*, const DLTensor* args, int32_t num_args, DLTensor* results,
                           int32_t num_results);
typedef struct {
  RxContext* context;
  RxEntry entry; /* rx_fn_<name> */
  DLTensor* args;
  DLTensor* results;
  int32_t num_args, num_results;
  /* What a successful call checked, so that the next one skips checks of what cannot have changed.
   * Set it to RX_NOTHING when a descriptor in `args` changes. */
  int32_t known;
  uint32_t lock; /* serialises threads that make the same call */
  int64_t symbols[RX_MAX_KNOWN_SYMBOLS];
  int32_t changing; /* the argument that rx_exchange_argument is changing, plus 1 */
  DLTensor before;  /* its descriptor before */
} RxCall;

enum { RX_OK, RX_ERROR, RX_OUT_OF_MEMORY, RX_INTERRUPTED };

/* Makes the call; RX_OK, or another value with a message in the context. */
RX_API int32_t rx_call(RxCall* call);

/* A new result, `data` initially NULL. The owner of this struct owns the memory as soon as it is
 * allocated, even if the call fails later, and frees it by rx_release. */
typedef struct {
  void* data;
  int64_t ndim;
  int64_t dims[]; /* as many as the rank in the metadata, RX_MAX_RANK if it is unknown */
} RxFresh;
RX_API void rx_release(RxFresh* fresh);

/* Makes the call on `threads` threads; 0: those of the context. A result i with fresh[i] is
 * allocated and described there, unless it is an argument updated in place, and results[i] is
 * ignored. */
RX_API int32_t rx_call_on(RxCall* call, int32_t threads, RxFresh* const* fresh);

/* Swaps args[index] and `tensor` while no thread makes the call; RX_OK, or another value with a
 * message. */
RX_API int32_t rx_exchange_argument(RxCall* call, int32_t index, DLTensor* tensor);

/* Threads of later calls with a context, the caller's included; 0: those of the module. */
RX_API void rx_set_context_threads(RxContext* context, int32_t threads);

/* Threads of the module's calls; 0 or less: $RELAX_NUM_THREADS, else every CPU of the process.
 * rx_get_threads is 0 if the variable is not a number of 1 or more; calls fail then. At most 256
 * are used, and a loop gets those that other calls do not use. */
RX_API void rx_set_threads(int32_t threads);
RX_API int32_t rx_get_threads(void);

/* Has loops of graph functions ask `poll` now and then, some 50 times a second, on the main thread
 * of the process only; the call ends with RX_INTERRUPTED once it answers nonzero. NULL: nobody. */
typedef int32_t (*RxPoll)(void);
RX_API void rx_set_poll(RxPoll poll);

enum { RX_ALLOCATIONS, RX_KERNELS, RX_PARALLEL_REGIONS, RX_ARENA_BYTES, RX_NUM_COUNTERS };
RX_API int64_t rx_counter(int32_t which); /* -1 for an unknown counter */

/* Time spans: one per kernel call, ordered by end, in nanoseconds of CLOCK_MONOTONIC. `site` is the
 * index of a kernel call in a host function, described by the metadata; `call` is the index of a
 * call since rx_profile. rx_profile discards earlier spans; recording stops after `capacity` spans,
 * 0 turns it off. Nonzero when out of memory. */
typedef struct {
  int32_t site, call;
  int64_t begin, end;
} RxSpan;
RX_API int32_t rx_profile(int64_t capacity);
RX_API int64_t rx_spans(RxSpan* copies, int64_t capacity); /* the count; copies the first */

RX_API void rx_free(void* data); /* frees a result that the runtime allocated */

/* A queue of `depth` items between threads, in their order: the edge between two stages of a
 * stream. Any threads push and pop; they sleep for at most so many nanoseconds while it is full or
 * empty, and are awake after a signal. A forked child may use what no thread used meanwhile. */
typedef struct RxQueue RxQueue;
enum { RX_QUEUE_BUSY = 4, RX_QUEUE_CLOSED = 5 };
RX_API RxQueue* rx_queue_new(int64_t depth); /* NULL: out of memory, or a depth below 1 */
RX_API int32_t rx_queue_push(RxQueue* queue, uint64_t item, int64_t nanoseconds);
RX_API int32_t rx_queue_pop(RxQueue* queue, uint64_t* item, int64_t nanoseconds);
/* Ends it: no item is pushed any more, and pops return RX_QUEUE_CLOSED after the last one. */
RX_API void rx_queue_close(RxQueue* queue);
RX_API void rx_queue_free(RxQueue* queue); /* of which no thread makes use any more */

/* Defined by the compiled module, not by the runtime: JSON text {"functions": {"main": {
 *      "arguments": [{"name": "x", "kind": "tensor", "dtype": "f32", "dims": ["n", 4],
 *                     "inout": false}],
 *      "results": [{"kind": "tensor", "dtype": "f32", "dims": ["n", 4], "alias": null}],
 *      "facts": ["n <= 2048"]}},
 * "libraries": [{"function": "openblas.sgemm", "c_symbol": "cblas_sgemm",
 *                   "providers": ["libopenblas.so.0"], "slot": "rx_lib_openblas_2esgemm"}], ...}
 * "on_host": true, beside kind "tensor": the module has a device, but this tensor is on the host.
 * kind "shape": a shape value, passed and returned as a 1-D int64 tensor. dtype: MLIR's name of the
 * element type. dims null: rank unknown; one of them null: dim unknown. alias: index of the inout
 * argument that the result is. argument_tree, result_tree: absent, or the tuples that Python takes
 * and returns, as nested lists of indices; C passes their elements. slot: an exported pointer
 * variable that the loader sets to the function's address. */
RX_API const char* rx_metadata(void);

/* Of modules whose kernels run on devices: tensors are on the first of them, scalars and shapes on
 * the host. Memory for them, and copies: nonzero, with a text of at most `room` bytes, on failure. A
 * call returns when the devices have done its work. Their functions are called by rx_call only. */
RX_API void* rx_tensor_new(int64_t bytes); /* NULL: out of memory */
RX_API void rx_tensor_free(void* data);
RX_API void rx_tensor_release(RxFresh* fresh); /* in place of rx_release */
RX_API int32_t rx_tensor_upload(void* to, const void* from, int64_t bytes, char* text,
                                int32_t room);
RX_API int32_t rx_tensor_download(void* to, const void* from, int64_t bytes, char* text,
                                  int32_t room);
RX_API int64_t rx_tensor_bytes(void);  /* of all devices, in use by the module */
RX_API int64_t rx_device_bytes(int32_t device); /* of one, by its index in the target */
RX_API int64_t rx_tensor_stream(void); /* that everything is queued on; 0: there is none */
RX_API int32_t rx_tensor_sync(char* text, int32_t room); /* waits for what is queued */
RX_API int32_t rx_tensor_device(void); /* DLPack's type */

/* ---- Tables that generated code passes
 * ---------------------------------------------------------------------- */

/* An expression in postfix order: pairs (opcode, operand); the operand of an operator is 0. It is
 * computed exactly; symbols and dims are integers of [0, 2^63). */
enum { RX_CONST, RX_SYMBOL, RX_ADD, RX_SUB, RX_MUL, RX_FLOORDIV, RX_MOD, RX_MIN, RX_MAX };

typedef struct {
  int64_t count; /* of int64s in the program; 0: the dim is not checked */
  const int64_t* program;
} RxDim;

enum { RX_TENSOR = 0, RX_SHAPE = 1, RX_SCALAR = 2 };

typedef struct {
  const char* name;
  int32_t kind; /* RX_SHAPE: a 1-D int64 tensor whose values are `dims`, RX_SCALAR: of rank 0, or a
                   tensor that is placed on the host; both are on the host in any case */
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
  int64_t weight;
  int32_t arg, dim;
} RxTerm;

/* divisor*symbol + offset is the sum of weight*dim, the offset being of other symbols. */
typedef struct {
  int64_t divisor; /* positive */
  int32_t symbol, num_terms;
  const RxTerm* terms;
  RxDim offset;
} RxSolution;

typedef struct {
  const char* name;
  int32_t num_args, num_results, num_symbols, num_facts;
  const RxArg* args;
  const char* const* symbols;
  const RxFact* facts;
  int64_t num_open;
  const int64_t* open; /* indices of the arguments whose dims or values mention symbols */
  int32_t uses_tiles;  /* kernels use the tile registers of AMX */
  int32_t is_cast;     /* a match_cast of the only argument; symbols may be bound already */
  int64_t num_solutions;
  const RxSolution* solutions; /* of symbols that no dim determines alone */
} RxFunction;

enum { RX_INTEGER, RX_DIMENSION, RX_BYTES };

typedef struct {
  RxDim size;
  int32_t kind; /* RX_INTEGER: any; RX_DIMENSION: not negative; RX_BYTES: of memory */
  int32_t pad;
} RxSize;

/* Expressions that a function computes in 64 bits, each step of which must fit. */
typedef struct {
  const char* name; /* of the function */
  int32_t num_sizes, num_symbols;
  const RxSize* sizes;
  const char* const* symbols;
} RxSizes;

/* ---- For generated code
 * -------------------------------------------------------------------------------------- */

/* Checks count, device, dtype, rank, layout, dims and facts of the arguments and writes the value
 * of each symbol. A dim that is one unbound symbol binds it; `a*s + b` with a > 0 and one unbound
 * symbol binds it by exact division; `solutions` bind others; other dims are compared, without wrapping. A symbol that no
 * argument mentions gets -1, and facts on it are left to the caller. */
int32_t rx_bind(RxContext* context, const RxFunction* info, const DLTensor* args, int32_t num_args,
                int32_t num_results, int64_t* symbols);

/* Nonzero, with a message, unless code for scalable vectors of so many bytes runs here: with RVV
 * they may be longer, with SVE not. `scale` is the machine's length in the unit of its manual. */
int32_t rx_check_vectors(RxContext* context, int64_t bytes, int64_t scale);

/* Allocates from the context's arena, 64-byte aligned, until rx_bind or a release to an earlier
 * mark. NULL: out of memory. */
void* rx_arena(RxContext* context, int64_t bytes);

/* The release frees what rx_arena allocated since the mark. */
void* rx_arena_mark(RxContext* context);
void rx_arena_release(RxContext* context, void* mark);

/* Copies bytes to memory of the context that it has for `site`, until the next copy there at the
 * same depth of recursion; they may lie in it. NULL: no memory. */
void* rx_keep(RxContext* context, int32_t site, const void* source, int64_t bytes);

/* Memory for a result: the caller's buffer, checked, or a new one described in results[index]. NULL
 * on error. */
void* rx_result(RxContext* context, DLTensor* results, int32_t index, int32_t code, int32_t bits,
                int32_t ndim, const int64_t* dims);

/* The same for a result that is no tensor, but a scalar or a shape, and on the host in any case. */
void* rx_host_result(RxContext* context, DLTensor* results, int32_t index, int32_t code,
                     int32_t bits, int32_t ndim, const int64_t* dims);

/* Describes a result that is an argument updated in place; the caller must not rx_free it. Nonzero
 * on error. */
int32_t rx_result_alias(RxContext* context, DLTensor* results, int32_t index,
                        const DLTensor* argument);

/* Binds the symbols of a cast that are -1 by the dims of its tensor, as rx_bind does, and checks
 * the other dims and the facts. Nonzero on error. */
int32_t rx_match_cast(RxContext* context, const RxFunction* info, int64_t* dims, int64_t* symbols);

/* Fails unless one of the facts holds; `info->name` requires them. */
int32_t rx_require(RxContext* context, const RxFunction* info, const int64_t* symbols);

/* Sets the error message for the first invalid size; at least one must be invalid. */
void rx_refuse_sizes(RxContext* context, const RxSizes* info, const int64_t* symbols);

/* Sets the error message for an index that is out of bounds; `where` is its location and op. */
void rx_refuse_index(RxContext* context, const char* where, int64_t index, int32_t axis,
                     int64_t extent);

/* At the end of a round of a loop: nonzero if the call is to be given up. The weight is up to 64 and
 * grows with the time that a round may take. */
int32_t rx_poll(RxContext* context, int32_t weight);

/* Around a call between functions that call themselves. rx_enter is nonzero if such calls are nested
 * too deep, or the call is to be given up; `where` is the location and op. */
enum { RX_MAX_DEPTH = 1000 };
int32_t rx_enter(RxContext* context, const char* where);
void rx_leave(RxContext* context);

/* A library function by the convention "dlpack". It fills the results, which are allocated and
 * described as the call declares them, and returns 0, or another status, which ends the call:
 * RX_INTERRUPTED if the host program knows why. */
typedef int32_t (*RxLibraryFunction)(const DLTensor* args, int32_t num_args, DLTensor* results,
                                     int32_t num_results);

/* Calls one. `info` describes its arguments and results; `words` are their addresses, then their
 * dims. Nonzero on error. */
int32_t rx_call_library(RxContext* context, const RxFunction* info, RxLibraryFunction function,
                        int64_t* words);

/* `cblas_sgemm` with integers of 64 bits. */
typedef void (*RxSgemm)(int32_t order, int32_t left, int32_t right, int64_t m, int64_t n, int64_t k,
                        float alpha, const float* a, int64_t lda, const float* b, int64_t ldb,
                        float beta, float* c, int64_t ldc);

/* A convolution of images [n, c, h, w] and filters [o, c, kh, kw] to [n, o, rows, columns]. */
typedef struct RxConv2d {
  int64_t n, c, h, w, o, kh, kw, rows, columns;
  int64_t strides[2], padding[4], dilation[2];
} RxConv2d;

/* Computes one by matrix products. `windows` has room for what the windows of an image see. */
void rx_im2col_sgemm(RxSgemm gemm, const RxConv2d* conv, const float* images, const float* filters,
                     float* results, float* windows);

/* Prints a line: the format, in which `{}` stands for the next value. Nonzero: out of memory. */
int32_t rx_print(RxContext* context, const char* format, const RxFunction* info, int64_t* words);

/* Sets the error message: the name of `info`, and the format with values. */
void rx_refuse(RxContext* context, const char* format, const RxFunction* info, int64_t* words);

/* Sets the error message; returns 1, so that generated code can return it. */
int32_t rx_fail(RxContext* context, const char* message);

/* Adds to the counter of kernels; one call per function is enough. */
void rx_count_kernels(int64_t count);

/* Around each kernel call; they do nothing unless rx_profile turned recording on. */
void rx_span_begin(int32_t site);
void rx_span_end(void);

/* In modules whose kernels run on devices, which have indices. A grid of groups is launched with the
 * arguments that `words` has, see `device/device.h`; a failure is the error of the call when it ends.
 * A place is the index of a device, or -1: the host. */
void rx_launch(int32_t kernel, int64_t x, int64_t y, int64_t z, const int64_t* words);
void* rx_device_constant(int32_t index); /* its address on the device that it is for */
/* Copies between places that are not both the host; nonzero on error. */
int32_t rx_device_move(RxContext* context, void* to, int32_t to_place, const void* from,
                       int32_t from_place, int64_t bytes);
/* Products of matrices by a function of a library, see `RxProduct`; nonzero on error. */
int32_t rx_device_product(RxContext* context, int32_t device, const void* product);
/* Scratch memory of launches, which frees it in the opposite order. */
void* rx_device_scratch(int32_t device, uint64_t bytes);
void rx_device_scratch_free(int32_t device, void* data);
/* As rx_arena, for what is on the host, or on another device than the first. */
void* rx_placed_arena(RxContext* context, int32_t place, int64_t bytes);
void* rx_placed_arena_mark(RxContext* context, int32_t place);
void rx_placed_arena_release(RxContext* context, int32_t place, void* mark);
/* A copy on the host, until the next one; NULL on error. */
void* rx_device_read(RxContext* context, int32_t device, const void* from, int64_t bytes);

/* Runs task(data, begin, end) over disjoint ranges that cover [0, count), on several threads if
 * count > grain. Returns when all are done. A nested call runs on the calling thread, as does one
 * when all other threads are in use. */
typedef void (*RxTask)(void* data, int64_t begin, int64_t end);
void rx_parallel_for(RxTask task, void* data, int64_t count, int64_t grain);

/* The calling thread's scratch stack, 64-byte aligned, freed in reverse order. Memory is reused by
 * later pushes. Out of memory, it aborts the call: kernels cannot report errors. */
void* rx_scratch_push(int64_t bytes);
void rx_scratch_pop(void* data);

#ifdef __cplusplus
}
#endif
#endif
