/* What a WebAssembly module imports: the functions of its host program, `web/relax.js` or Python. */
#define HOST(name) __attribute__((import_module("relax"), import_name(name)))

HOST("now") int64_t host_now(void);                              /* nanoseconds; of any epoch */
HOST("print") void host_print(const char* text, int32_t length); /* UTF-8 */

static int64_t now_ns(void) { return host_now(); }
