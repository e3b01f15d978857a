/* Products by cuBLAS. The module's loader finds one function of the library; the others are of the
 * same file. What it queues on the stream of the device, or on the one that is captured for graphs, has a
 * workspace of ours: graphs within others must not allocate any.
 *
 * Its matrices are column-major, so a row-major one is passed as its transpose: the result is that of
 * rhs times lhs, whose rows are our columns.
 *
 * Source: NVIDIA, cuBLAS library, of CUDA 11 and later.
 */

enum { OP_N = 0, OP_T = 1, DEFAULT_ALGORITHM = -1, SUMS_ARE_WIDE = 16 };
enum { COMPUTE_F32 = 68, COMPUTE_F64 = 70 };

typedef int (*Gemm)(void*, int, int, int, int, int, const void*, const void*, int, int, long long,
                    const void*, int, int, long long, const void*, void*, int, int, long long, int,
                    int, int);

#define CUBLAS(X)                        \
  X(cublasCreate_v2, (void**))           \
  X(cublasDestroy_v2, (void*))           \
  X(cublasSetStream_v2, (void*, void*))  \
  X(cublasSetWorkspace_v2, (void*, void*, size_t)) \
  X(cublasSetMathMode, (void*, int))

enum { WORKSPACE_BYTES = 32 << 20 }; /* what NVIDIA recommends for the devices that need most */

static struct {
  CUBLAS(FIELD)
} blas;

static const char* cublas_said(const char* what, int status) {
  snprintf(text, sizeof text, "%s: cuBLAS says %d", what, status);
  return text;
}

static const char* find_cublas(void* function) {
  Dl_info found;
  void* file = dladdr(function, &found) ? dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
  if (!file) return "the file of cuBLAS cannot be found";
#define LOOK_UP_CUBLAS(name, types)                                                                \
  *(void**)(&blas.name) = dlsym(file, #name);                                                      \
  if (!blas.name) {                                                                                \
    snprintf(text, sizeof text, "'%s' is too old: it has no " #name, found.dli_fname);             \
    return text;                                                                                   \
  }
  CUBLAS(LOOK_UP_CUBLAS)
  return NULL;
}

/* Has the device have a handle. */
static const char* open_cublas(void* function) {
  if (own->cublas) return NULL;
  const char* wrong = find_cublas(function);
  if (wrong) return wrong;
  int status = cu.cuMemAlloc_v2(&own->workspace, WORKSPACE_BYTES);
  if (status) {
    own->workspace = 0;
    return said("there is no workspace of 32 MiB for cuBLAS", status);
  }
  status = blas.cublasCreate_v2(&own->cublas);
  if (status) own->cublas = NULL;
  if (!status) status = blas.cublasSetMathMode(own->cublas, SUMS_ARE_WIDE);
  if (!status) return NULL;
  close_cublas();
  return cublas_said("it cannot start", status);
}

/* After all that uses the workspace. */
static void close_cublas(void) {
  if (own->cublas) blas.cublasDestroy_v2(own->cublas);
  if (own->workspace) cu.cuMemFree_v2(own->workspace);
  own->cublas = own->cublas_stream = NULL;
  own->workspace = 0;
}

/* Another stream resets the workspace. */
static const char* use_stream(void* stream) {
  if (own->cublas_stream == stream) return NULL;
  own->cublas_stream = NULL;
  int status = blas.cublasSetStream_v2(own->cublas, stream);
  if (!status)
    status = blas.cublasSetWorkspace_v2(own->cublas, (void*)own->workspace, WORKSPACE_BYTES);
  if (status) return cublas_said("it cannot use a stream", status);
  own->cublas_stream = stream;
  return NULL;
}

/* The library's name of a type of elements. */
static int cublas_type(const RxProduct* product) {
  if (product->bits == 64) return 1;
  if (product->bits == 32) return 0;
  return product->code == 4 ? 14 : 2; /* bf16, f16 */
}

static const char* multiply(const RxProduct* p) {
  static const float one = 1, zero = 0;
  static const double wide_one = 1, wide_zero = 0;
  int is_wide = p->bits == 64, type = cublas_type(p);
  const void *alpha = is_wide ? (const void*)&wide_one : &one;
  const void *beta = is_wide ? (const void*)&wide_zero : &zero;
  Gemm gemm;
  *(void**)&gemm = p->function;
  int m = (int)p->m, n = (int)p->n, k = (int)p->k, count = (int)p->count;
  int status = gemm(own->cublas, p->is_transposed ? OP_T : OP_N, OP_N, n, m, k, alpha, p->rhs, type,
                    p->is_transposed ? k : n, (long long)n * k, p->lhs, type, k, (long long)m * k,
                    beta, p->result, type, n, (long long)m * n, count,
                    is_wide ? COMPUTE_F64 : COMPUTE_F32, DEFAULT_ALGORITHM);
  return status ? cublas_said("it cannot multiply", status) : NULL;
}

static const char* queue_product(const RxLaunch* launch, void* stream) {
  RxProduct product;
  memcpy(&product, launch->words, sizeof product);
  const int64_t sizes[] = {product.count, product.m, product.n, product.k};
  for (int i = 0; i < 4; i++)
    if (sizes[i] > INT32_MAX) return "has more rows, columns or matrices than cuBLAS counts";
  if (!product.k) { /* no library says what an empty sum is */
    size_t bytes = (size_t)(product.count * product.m * product.n * product.bits / 8);
    int status = cu.cuMemsetD8Async((Address)product.result, 0, bytes, stream);
    return status ? said("zeros cannot be written", status) : NULL;
  }
  const char* wrong = open_cublas(product.function);
  if (!wrong) wrong = use_stream(stream);
  return wrong ? wrong : multiply(&product);
}
