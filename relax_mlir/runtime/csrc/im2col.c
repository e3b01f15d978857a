/* Convolutions by the matrix product of a library. What the windows of an image see becomes a
 * matrix, with a row for each element of a filter. Source: Chellapilla et al., 2006. */

/* The x for which first + x * stride is in [0, extent), of x in [0, count). */
typedef struct Range {
  int64_t begin, end;
} Range;

static Range inside(int64_t first, int64_t stride, int64_t extent, int64_t count) {
  int64_t begin = first < 0 ? (-first - 1) / stride + 1 : 0;
  int64_t end = first < extent ? (extent - first - 1) / stride + 1 : 0;
  if (end > count) end = count;
  return (Range){begin, end > begin ? end : begin};
}

/* What element (u, v) of a filter meets in each window of one channel. */
static void unfold(const RxConv2d* conv, const float* image, int64_t u, int64_t v, float* row) {
  int64_t top = u * conv->dilation[0] - conv->padding[0], stride = conv->strides[1];
  int64_t left = v * conv->dilation[1] - conv->padding[1], columns = conv->columns;
  Range rows = inside(top, conv->strides[0], conv->h, conv->rows);
  Range across = inside(left, stride, conv->w, columns);
  if (across.begin > columns) across = (Range){columns, columns};
  for (int64_t y = 0; y < conv->rows; y++, row += columns) {
    if (y < rows.begin || y >= rows.end) {
      memset(row, 0, (size_t)columns * sizeof *row);
      continue;
    }
    const float* line = image + (y * conv->strides[0] + top) * conv->w;
    memset(row, 0, (size_t)across.begin * sizeof *row);
    for (int64_t x = across.begin; x < across.end; x++) row[x] = line[x * stride + left];
    memset(row + across.end, 0, (size_t)(columns - across.end) * sizeof *row);
  }
}

static int sees_itself(const RxConv2d* conv) {
  const int64_t *p = conv->padding, *s = conv->strides;
  return conv->kh == 1 && conv->kw == 1 && s[0] == 1 && s[1] == 1 && !(p[0] | p[1] | p[2] | p[3]);
}

void rx_im2col_sgemm(RxSgemm gemm, const RxConv2d* conv, const float* images, const float* filters,
                     float* results, float* windows) {
  enum { ROW_MAJOR = 101, AS_IT_IS = 111 };
  int64_t depth = conv->c * conv->kh * conv->kw, size = conv->rows * conv->columns;
  int64_t pixels = conv->h * conv->w;
  if (!size || !conv->o) return;
  for (int64_t n = 0; n < conv->n; n++) {
    const float* image = images + n * conv->c * pixels;
    float* row = windows;
    if (!sees_itself(conv))
      for (int64_t c = 0; c < conv->c; c++)
        for (int64_t u = 0; u < conv->kh; u++)
          for (int64_t v = 0; v < conv->kw; v++, row += size)
            unfold(conv, image + c * pixels, u, v, row);
    gemm(ROW_MAJOR, AS_IT_IS, AS_IT_IS, conv->o, size, depth, 1.0f, filters,
         depth ? depth : 1, sees_itself(conv) ? image : windows, size, 0.0f,
         results + n * conv->o * size, size);
  }
}
