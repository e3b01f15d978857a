"""The C library functions that generated code and the runtime may import, by library.

Code generation reads no headers; a name outside these lists is probably a mistake, which is better
reported at link time than at load time.
"""

_C = """
abort abs aligned_alloc atoi bsearch calloc clock_gettime close dl_iterate_phdr dlclose dlerror
dlopen dlsym dprintf environ exit fclose fflush fileno fopen fprintf fputc fputs fread free fseek
ftell fwrite get_nprocs getauxval getc getenv getpagesize getpid gettid gettimeofday isatty labs
ldiv lseek madvise malloc malloc_usable_size memalign memchr memcmp memcpy memmove memset mkstemp
mlock mmap mprotect munlock munmap nanosleep open perror posix_memalign printf putc putchar puts
qsort raise read realloc remove rename sched_getaffinity sched_getcpu sched_setaffinity sched_yield
secure_getenv setenv setvbuf sigaction sigaddset sigemptyset sigfillset signal sigprocmask snprintf
sprintf sscanf stat stderr stdin stdout strcasecmp strcat strchr strcmp strcpy strdup strerror
strerror_r strlen strncat strncmp strncpy strnlen strrchr strstr strtod strtof strtok_r strtol
strtoll strtoul strtoull syscall sysconf time unlink usleep vfprintf vprintf vsnprintf vsprintf
write __assert_fail __cxa_atexit __cxa_finalize __cxa_thread_atexit_impl __errno_location
__fprintf_chk __isoc99_sscanf __memcpy_chk __memmove_chk __memset_chk __printf_chk __register_atfork
__sched_cpualloc __sched_cpucount __sched_cpufree __snprintf_chk __sprintf_chk __stack_chk_fail
__strcpy_chk __vsnprintf_chk _setjmp longjmp
"""
_THREADS = """
pthread_atfork pthread_attr_destroy pthread_attr_getstack pthread_attr_init
pthread_attr_setaffinity_np pthread_attr_setdetachstate pthread_attr_setstacksize
pthread_cond_broadcast pthread_cond_destroy pthread_cond_init pthread_cond_signal
pthread_cond_timedwait pthread_cond_wait pthread_create pthread_detach pthread_equal pthread_exit
pthread_getaffinity_np pthread_getattr_np pthread_getspecific pthread_join pthread_key_create
pthread_key_delete pthread_kill pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock
pthread_mutex_trylock pthread_mutex_unlock pthread_once pthread_self pthread_setaffinity_np
pthread_setname_np pthread_setspecific pthread_sigmask sem_destroy sem_init sem_post sem_trywait
sem_wait
"""
_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1
fabs fdim floor fma fmax fmin fmod frexp hypot ldexp lgamma llround log log10 log1p log2 logb lrint
lround modf nearbyint nextafter pow remainder rint round roundeven scalbn sin sincos sinh sqrt tan
tanh tgamma trunc
"""
_LOADER = "__tls_get_addr"

# The loader itself defines it, so it needs no library.
_LIBRARY = {name: "" for name in _LOADER.split()}
_LIBRARY |= {name: "libc.so.6" for name in _C.split()}
_LIBRARY |= {name: "libpthread.so.0" for name in _THREADS.split()}
_LIBRARY |= {name + suffix: "libm.so.6" for name in _MATH.split() for suffix in ("", "f")}


def library_of(name: str) -> str | None:
    """The library that has a symbol, "" if it is always loaded; None for an unknown symbol."""
    return _LIBRARY.get(name)
