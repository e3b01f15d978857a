/* A stand-in for libcublas.so.12, on the stand-in for NVIDIA's driver, which RELAX_CUDA_DRIVER names.
 *
 * It refuses arguments that the library would, and those that no caller of ours should pass: then the
 * status is 7. What is queued is computed when the stream comes to it, in double. Failures are
 * injected by the name of a function.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

enum { INVALID = 7, NOT_INITIALIZED = 1 };
enum { F32 = 0, F64 = 1, F16 = 2, BF16 = 14 };

static struct {
  void* (*data)(const void* address, size_t bytes);
  int (*later)(void* stream, void (*function)(void*), const void* data, size_t bytes);
  int (*is_capturing)(const void* stream);
  int (*pop)(void** context);
  int (*push)(void* context);
} driver;

typedef struct {
  void *stream, *workspace; /* NULL: one that it allocates */
  int mode;
} Handle;

static int handles, failing_status;
static int64_t products;
static char failing[64];

API int fake_handles(void) { return handles; }
API int64_t fake_products(void) { return products; }
API void fake_fail(const char* name, int status) {
  strncpy(failing, name, sizeof failing - 1);
  failing_status = status;
}

static int fails(const char* name) {
  if (strcmp(name, failing)) return 0;
  failing[0] = 0;
  return failing_status;
}

#define ENTER                                   \
  do {                                          \
    int status_ = fails(__func__);              \
    if (status_) return status_;                \
    if (!has_context()) return NOT_INITIALIZED; \
  } while (0)

static int has_context(void) {
  if (!driver.data) {
    void* file = dlopen(getenv("RELAX_CUDA_DRIVER"), RTLD_NOW | RTLD_NOLOAD);
    if (!file) return 0;
    *(void**)&driver.later = dlsym(file, "standin_later");
    *(void**)&driver.is_capturing = dlsym(file, "standin_is_capturing");
    *(void**)&driver.pop = dlsym(file, "cuCtxPopCurrent_v2");
    *(void**)&driver.push = dlsym(file, "cuCtxPushCurrent_v2");
    *(void**)&driver.data = dlsym(file, "standin_data");
  }
  void* context;
  return !driver.pop(&context) && !driver.push(context);
}

API int cublasCreate_v2(void** made) {
  ENTER;
  *made = calloc(1, sizeof(Handle));
  return handles++, 0;
}
API int cublasDestroy_v2(void* handle) {
  free(handle);
  return handles--, 0;
}
API int cublasSetStream_v2(void* handle, void* stream) {
  ENTER;
  *(Handle*)handle = (Handle){.stream = stream, .mode = ((Handle*)handle)->mode};
  return 0;
}
API int cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes) {
  ENTER;
  if (bytes < 32 << 20 || !driver.data(workspace, bytes)) return INVALID;
  ((Handle*)handle)->workspace = workspace;
  return 0;
}
API int cublasSetMathMode(void* handle, int mode) {
  ENTER;
  ((Handle*)handle)->mode = mode;
  return mode == 16 ? 0 : INVALID;
}

static size_t bytes_of(int type) { return type == F64 ? 8 : type == F32 ? 4 : 2; }

static double load(const char* at, int64_t index, int type) {
  if (type == F64) return ((const double*)at)[index];
  if (type == F32) return ((const float*)at)[index];
  if (type == F16) return (double)((const _Float16*)at)[index];
  uint32_t bits = (uint32_t)((const uint16_t*)at)[index] << 16;
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

static void store(char* at, int64_t index, int type, double value) {
  if (type == F64) ((double*)at)[index] = value;
  if (type == F32) ((float*)at)[index] = (float)value;
  if (type == F16) ((_Float16*)at)[index] = (_Float16)(float)value;
  if (type != BF16) return;
  float rounded = (float)value;
  uint32_t bits;
  memcpy(&bits, &rounded, 4);
  bits += 0x7FFF + (bits >> 16 & 1);
  ((uint16_t*)at)[index] = (uint16_t)(bits >> 16);
}

typedef struct {
  int left_transposed, right_transposed, m, n, k, type, lda, ldb, ldc, count;
  int64_t stride_a, stride_b, stride_c;
  const char *a, *b;
  char* c;
} Product;

/* The memory of matrices, the last element of which is at the end; NULL: it is not all there. */
static char* matrices(const void* address, int rows, int columns, int leading, long long stride,
                      int count, int type) {
  int64_t elements = (count - 1) * (int64_t)stride + (columns - 1) * (int64_t)leading + rows;
  return driver.data(address, (size_t)elements * bytes_of(type));
}

/* Where the matrices are now: there is other memory at an address when what had it is freed. */
static int find(const Product* p, const char** left, const char** right, char** result) {
  int ta = p->left_transposed, tb = p->right_transposed, m = p->m, n = p->n, k = p->k;
  *left = matrices(p->a, ta ? k : m, ta ? m : k, p->lda, p->stride_a, p->count, p->type);
  *right = matrices(p->b, tb ? n : k, tb ? k : n, p->ldb, p->stride_b, p->count, p->type);
  *result = matrices(p->c, m, n, p->ldc, p->stride_c, p->count, p->type);
  return *left && *right && *result;
}

static void compute(void* given) {
  const Product* p = given;
  const char *left, *right;
  char* result;
  if (!find(p, &left, &right, &result)) abort();
  for (int64_t each = 0; each < p->count; each++)
    for (int64_t column = 0; column < p->n; column++)
      for (int64_t row = 0; row < p->m; row++) {
        double sum = 0;
        for (int64_t i = 0; i < p->k; i++) {
          int64_t a = p->left_transposed ? i + row * p->lda : row + i * p->lda;
          int64_t b = p->right_transposed ? column + i * p->ldb : i + column * p->ldb;
          sum += load(left, each * p->stride_a + a, p->type) *
                 load(right, each * p->stride_b + b, p->type);
        }
        store(result, each * p->stride_c + row + column * p->ldc, p->type, sum);
      }
}

/* Another kernel, as libraries have for few rows. */
static void compute_row(void* given) { compute(given); }

API int cublasGemmStridedBatchedEx(void* handle, int ta, int tb, int m, int n, int k,
                                   const void* alpha, const void* a, int a_type, int lda,
                                   long long sa, const void* b, int b_type, int ldb, long long sb,
                                   const void* beta, void* c, int c_type, int ldc, long long sc,
                                   int count, int compute_type, int algorithm) {
  ENTER;
  int is_wide = a_type == F64;
  if (!handle || (ta != 0 && ta != 1) || (tb != 0 && tb != 1) || m <= 0 || n <= 0 || k <= 0 ||
      count <= 0 || a_type != b_type || b_type != c_type || algorithm != -1 ||
      compute_type != (is_wide ? 70 : 68) || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m)
    return INVALID;
  if (a_type != F32 && a_type != F64 && a_type != F16 && a_type != BF16) return INVALID;
  double one = is_wide ? *(const double*)alpha : *(const float*)alpha;
  double zero = is_wide ? *(const double*)beta : *(const float*)beta;
  if (one != 1 || zero != 0 || (count > 1 && sc < (long long)ldc * n)) return INVALID;
  Product product = {ta, tb, m, n, k, a_type, lda, ldb, ldc, count, sa, sb, sc, a, b, c};
  const char *left, *right;
  char* result;
  if (!find(&product, &left, &right, &result)) return INVALID;
  /* memory that a graph would allocate has no place in graphs within others */
  const Handle* own = handle;
  if (driver.is_capturing(own->stream) && !own->workspace) return INVALID;
  products++;
  return driver.later(own->stream, n == 1 ? compute_row : compute, &product, sizeof product) ? 13 : 0;
}
