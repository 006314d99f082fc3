/* A program without a C library: it waits. */
void _start(void);
void _start(void) {
  for (;;) {
    long result;
#ifdef __i386__
    __asm__ volatile("int $0x80" : "=a"(result) : "0"(29));
#elif defined(__x86_64__)
    __asm__ volatile("syscall" : "=a"(result) : "0"(34) : "rcx", "r11", "memory");
#else
    register long number __asm__("x8") = 73, first __asm__("x0") = 0;
    __asm__ volatile("svc 0" : "=r"(result) : "r"(number), "0"(first), "r"(0), "r"(0), "r"(0));
#endif
  }
}
