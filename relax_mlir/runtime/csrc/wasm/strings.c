/* Functions of the C library on text, as far as the runtime needs them. */

__attribute__((no_builtin)) size_t strlen(const char* text) {
  size_t length = 0;
  while (text[length]) length++;
  return length;
}

/* Text that is cut off where there is no room; `length` counts what is. */
typedef struct {
  char* out;
  size_t room, length;
} Line;

static void put_char(Line* line, char c) {
  if (line->length + 1 < line->room) line->out[line->length] = c;
  line->length++;
}

static void put_text(Line* line, const char* text) {
  while (*text) put_char(line, *text++);
}

static void put_integer(Line* line, uint64_t x, unsigned base) {
  char digits[24];
  int count = 0;
  do digits[count++] = "0123456789abcdef"[x % base];
  while (x /= base);
  while (count) put_char(line, digits[--count]);
}

static void put_signed(Line* line, int64_t x) {
  if (x < 0) put_char(line, '-');
  put_integer(line, x < 0 ? -(uint64_t)x : (uint64_t)x, 10);
}

/* With %s, %d, %u, %lld, %llu, %p, %%. */
int vsnprintf(char* out, size_t room, const char* format, va_list values) {
  Line line = {out, room, 0};
  for (; *format; format++) {
    int is_long = 0;
    if (*format != '%') {
      put_char(&line, *format);
      continue;
    }
    while (*++format == 'l') is_long = 1;
    switch (*format) {
      case 's': put_text(&line, va_arg(values, const char*)); break;
      case 'd': put_signed(&line, is_long ? va_arg(values, int64_t) : va_arg(values, int32_t)); break;
      case 'u': put_integer(&line, is_long ? va_arg(values, uint64_t) : va_arg(values, uint32_t), 10); break;
      case 'p':
        put_text(&line, "0x");
        put_integer(&line, (uintptr_t)va_arg(values, void*), 16);
        break;
      default: put_char(&line, *format);
    }
  }
  if (room) out[line.length < room ? line.length : room - 1] = 0;
  return (int)line.length;
}

int snprintf(char* out, size_t room, const char* format, ...) {
  va_list values;
  va_start(values, format);
  int length = vsnprintf(out, room, format, values);
  va_end(values);
  return length;
}

/* All that is written goes to the host program. */
FILE* const stdout = NULL;

size_t fwrite(const void* data, size_t size, size_t count, FILE* file) {
  (void)file;
  host_print(data, (int32_t)(size * count));
  return count;
}

int fflush(FILE* file) {
  (void)file;
  return 0;
}
