/* Numbers as text, by the C library. */
#include <stdlib.h>

/* As few digits as tell the number from others of its type, 6 at least; `digits` has room for 32. */
static void write_float(char* digits, double x, int32_t bits) {
  for (int precision = 6; precision <= 17; precision++) {
    snprintf(digits, 32, x != x ? "nan" : "%.*g", precision, x);
    if (bits == 16 || x - x != 0) break;
    if (bits == 32 ? strtof(digits, NULL) == (float)x : strtod(digits, NULL) == x) break;
  }
  for (char* at = digits; *at; at++)
    if (*at == ',') *at = '.'; /* whatever the locale */
}
