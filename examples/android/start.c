/* The start of an executable for 64-bit Android, which its NDK has as `crtbegin_dynamic.o`. */

int main(int count, char** arguments);

/* Of bionic: calls `main`, then exits. No function is to run before or after it. */
typedef struct {
  void (**before)(void);
  void (**at_start)(void);
  void (**at_end)(void);
} Functions;
_Noreturn void __libc_init(void* stack, void (*unused)(void), int (*main)(int, char**),
                           const Functions* functions);

__attribute__((used)) static void start(void* stack) {
  static void (*none[])(void) = {(void (*)(void))-1, 0};
  static const Functions functions = {none, none, none};
  __libc_init(stack, 0, main, &functions);
}

__asm__(".globl _start\n_start: mov x29, #0\n mov x30, #0\n mov x0, sp\n b start");
