"""The C library functions that generated code and the runtime may import, by system and library.

Code generation reads no headers; a name outside these lists is probably a mistake, which is better
reported at link time than at load time.

Source: glibc and bionic (`libc.map.txt`, API level 28), their exported symbols.
"""

from collections.abc import Mapping
from dataclasses import dataclass

_C = """
abort abs aligned_alloc atoi bsearch calloc clock_gettime close dl_iterate_phdr dladdr dlclose
dlerror dlopen dlsym dprintf environ exit fclose fflush fileno fopen fprintf fputc fputs fread free
fseek ftell fwrite get_nprocs getauxval getc getenv getpagesize getpid gettid gettimeofday isatty
labs ldiv lseek madvise malloc malloc_usable_size memalign memchr memcmp memcpy memmove memset
mkstemp mlock mmap mprotect munlock munmap nanosleep open perror posix_memalign printf putc putchar
puts qsort raise read realloc remove rename sched_getaffinity sched_getcpu sched_setaffinity
sched_yield secure_getenv setenv setvbuf sigaction sigaddset sigemptyset sigfillset signal
sigprocmask snprintf sprintf sscanf stat stderr stdin stdout strcasecmp strcat strchr strcmp strcpy
strdup strerror strerror_r strlen strncat strncmp strncpy strnlen strrchr strstr strtod strtof
strtok_r strtol strtoll strtoul strtoull syscall sysconf time unlink usleep vfprintf vprintf
vsnprintf vsprintf write __assert_fail __cxa_atexit __cxa_finalize __cxa_thread_atexit_impl __errno
__errno_location __fprintf_chk __isoc99_sscanf __memcpy_chk __memmove_chk __memset_chk __printf_chk
__register_atfork __sched_cpualloc __sched_cpucount __sched_cpufree __snprintf_chk __sprintf_chk
__stack_chk_fail __strcpy_chk __vsnprintf_chk _setjmp longjmp
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
_LINKER = "dl_iterate_phdr dladdr dlclose dlerror dlopen dlsym"


@dataclass(frozen=True)
class System:
    """What the linker has to know of a system: its libraries, and what its loader can do.

    `libraries` has the library of each symbol: "" for one that is always loaded.
    """

    name: str
    c_library: str
    libraries: Mapping[str, str]
    has_unique: bool
    """Whether a variable can be one for all modules of a process, and keeps its own loaded."""

    def library_of(self, name: str) -> str | None:
        """The library that has a symbol; None for an unknown symbol."""
        return self.libraries.get(name)


def _named(c: str, threads: str, math: str, linker: str) -> dict[str, str]:
    named = {name: "" for name in _LOADER.split()}  # the loader itself defines it
    named |= {name: c for name in _C.split()}
    named |= {name: threads for name in _THREADS.split()}
    named |= {name + suffix: math for name in _MATH.split() for suffix in ("", "f")}
    return named | {name: linker for name in _LINKER.split()}


def _without(names: str, libraries: dict[str, str]) -> dict[str, str]:
    absent = set(names.split())
    return {name: library for name, library in libraries.items() if name not in absent}


LINUX = System(
    "linux",
    "libc.so.6",
    _without("__errno", _named("libc.so.6", "libpthread.so.0", "libm.so.6", "libc.so.6")),
    has_unique=True,
)
ANDROID = System(
    "android",
    "libc.so",
    _without(
        "__errno_location __isoc99_sscanf __printf_chk __fprintf_chk __assert_fail secure_getenv "
        "pthread_attr_setaffinity_np pthread_getaffinity_np pthread_setaffinity_np exp10 exp10f "
        "roundeven roundevenf",
        _named("libc.so", "libc.so", "libm.so", "libdl.so"),
    ),
    has_unique=False,
)
SYSTEMS = {system.name: system for system in (LINUX, ANDROID)}
