/* Text with values: what graph functions print, and the messages of assertions. */
#include <stdio.h>

enum { LONG_TENSOR = 1000, EDGE = 3, TEXT_SIZE = 1 << 16 };

/* Text of at most `room` bytes; more is cut off. */
typedef struct {
  char* data;
  int32_t room, used;
} Text;

static void put(Text* text, const char* bytes, size_t length) {
  size_t left = (size_t)(text->room - text->used);
  if (length > left) length = left;
  memcpy(text->data + text->used, bytes, length);
  text->used += (int32_t)length;
}

static void put_string(Text* text, const char* string) { put(text, string, strlen(string)); }

static int is_full(const Text* text) { return text->used == text->room; }

static void put_float(Text* text, double x, int32_t bits) {
  char digits[32];
  write_float(digits, x, bits);
  put_string(text, digits);
}

static double float_at(const DLTensor* tensor, int64_t index) {
  int is_bfloat = tensor->dtype.code == RX_BFLOAT;
  if (tensor->dtype.bits == 64) return ((const double*)tensor->data)[index];
  if (tensor->dtype.bits == 32) return ((const float*)tensor->data)[index];
  uint16_t bits = ((const uint16_t*)tensor->data)[index];
  return bits_float(is_bfloat ? (uint32_t)bits << 16 : half_to_float_bits(bits));
}

static int64_t unsigned_at(const DLTensor* tensor, int64_t index) {
  switch (tensor->dtype.bits) {
    case 8: return ((const uint8_t*)tensor->data)[index];
    case 16: return ((const uint16_t*)tensor->data)[index];
    case 32: return ((const uint32_t*)tensor->data)[index];
    default: return ((const int64_t*)tensor->data)[index];
  }
}

static int64_t signed_at(const DLTensor* tensor, int64_t index) {
  switch (tensor->dtype.bits) {
    case 8: return ((const int8_t*)tensor->data)[index];
    case 16: return ((const int16_t*)tensor->data)[index];
    case 32: return ((const int32_t*)tensor->data)[index];
    default: return ((const int64_t*)tensor->data)[index];
  }
}

static void put_element(Text* text, const DLTensor* tensor, int64_t index) {
  char digits[32];
  int32_t code = tensor->dtype.code;
  if (code == RX_FLOAT || code == RX_BFLOAT) {
    put_float(text, float_at(tensor, index), tensor->dtype.bits);
    return;
  }
  int64_t value = code == RX_UINT ? unsigned_at(tensor, index) : signed_at(tensor, index);
  if (code == RX_BOOL)
    snprintf(digits, sizeof digits, "%s", value ? "true" : "false");
  else
    snprintf(digits, sizeof digits, code == RX_UINT ? "%llu" : "%lld", (long long)value);
  put_string(text, digits);
}

/* The elements along the axes from `axis` on, of which the first has the index `first`. */
static void put_axis(Text* text, const DLTensor* tensor, int32_t axis, int64_t first, int is_long) {
  if (axis == tensor->ndim) {
    put_element(text, tensor, first);
    return;
  }
  int64_t extent = tensor->shape[axis];
  put_string(text, "[");
  for (int64_t i = 0; i < extent && !is_full(text); i++) {
    if (i) put_string(text, ", ");
    if (is_long && extent > 2 * EDGE && i == EDGE) {
      put_string(text, "..., ");
      i = extent - EDGE;
    }
    put_axis(text, tensor, axis + 1, first * extent + i, is_long);
  }
  put_string(text, "]");
}

static void put_tensor(Text* text, const DLTensor* tensor) {
  double count = 1;
  for (int32_t axis = 0; axis < tensor->ndim; axis++) count *= (double)tensor->shape[axis];
  put_axis(text, tensor, 0, 0, count > LONG_TENSOR);
}

/* Has the elements on the host; 0 if they cannot be read. */
static int read_tensor(RxContext* context, DLTensor* tensor) {
#ifdef RX_DEVICE
  int64_t bytes = span_bytes(tensor->dtype.bits, tensor->ndim, tensor->shape);
  tensor->data = rx_device_read(context, 0, tensor->data, has_elements(tensor) ? bytes : 0);
#endif
  (void)context;
  return tensor->data != NULL || !has_elements(tensor);
}

/* The format, in which `{}` stands for the next value, and `{{` for a brace. */
static void put_values(RxContext* context, Text* text, const char* format, Operands values) {
  for (const char* at = format; *at; at++) {
    if (at[0] == '{' && at[1] == '}') {
      int is_tensor = values.arg->kind == RX_TENSOR;
      DLTensor value = next_operand(&values);
      if (is_tensor && !read_tensor(context, &value))
        put_string(text, "?");
      else
        put_tensor(text, &value);
    } else {
      put(text, at, 1);
    }
    if ((*at == '{' && at[1] == '}') || ((*at == '{' || *at == '}') && at[1] == *at)) at++;
  }
}

int32_t rx_print(RxContext* context, const char* format, const RxFunction* info, int64_t* words) {
  Text text = {malloc(TEXT_SIZE + 4), TEXT_SIZE, 0};
  if (!text.data) {
    say_out_of_memory(context);
    say(context, "the text of graph.print");
    return 1;
  }
  put_values(context, &text, format, operands_of(info, words));
  int is_cut = is_full(&text);
  text.room += 4;
  put_string(&text, is_cut ? "...\n" : "\n");
  fwrite(text.data, 1, (size_t)text.used, stdout);
  fflush(stdout);
  free(text.data);
  return 0;
}

void rx_refuse(RxContext* context, const char* format, const RxFunction* info, int64_t* words) {
  clear_error(context);
  say(context, "%s", info->name);
  Text text = {context->error, ERROR_SIZE - 1, context->error_length};
  put_values(context, &text, format, operands_of(info, words));
  context->error[context->error_length = text.used] = 0;
}
