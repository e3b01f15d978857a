/* Copies between strided memrefs, which MLIR lowers to a call. */

typedef struct {
  int64_t rank;
  void* descriptor; /* {allocated, aligned, offset, sizes[rank], strides[rank]} */
} UnrankedMemRef;

typedef struct {
  char *allocated, *aligned;
  int64_t offset, sizes_and_strides[];
} MemRef;

static void copy_dim(int64_t bytes, int64_t rank, const int64_t* sizes, const char* from,
                     const int64_t* from_strides, char* to, const int64_t* to_strides) {
  if (rank == 0) {
    memcpy(to, from, (size_t)bytes);
    return;
  }
  if (rank == 1 && *from_strides == 1 && *to_strides == 1) {
    memcpy(to, from, (size_t)(bytes * *sizes));
    return;
  }
  for (int64_t i = 0; i < *sizes; i++)
    copy_dim(bytes, rank - 1, sizes + 1, from + i * bytes * *from_strides, from_strides + 1,
             to + i * bytes * *to_strides, to_strides + 1);
}

void memrefCopy(int64_t bytes, const UnrankedMemRef* from, const UnrankedMemRef* to) {
  const MemRef *source = from->descriptor, *target = to->descriptor;
  const int64_t* sizes = source->sizes_and_strides;
  copy_dim(bytes, from->rank, sizes, source->aligned + source->offset * bytes, sizes + from->rank,
           target->aligned + target->offset * bytes, target->sizes_and_strides + from->rank);
}
