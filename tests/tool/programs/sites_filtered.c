/* sites.c under a filter of system calls that ends the process at any but those of every malloc,
 * and its own. */
#define main run_sites
#include "sites.c"
#undef main

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const unsigned allowed[] = {
    SYS_mmap, SYS_munmap,    SYS_mremap, SYS_mprotect,   SYS_madvise,       SYS_futex,
    SYS_brk,  SYS_getrandom, SYS_write,  SYS_exit_group, SYS_clock_gettime, SYS_clock_nanosleep,
};
enum { ALLOWED = sizeof allowed / sizeof *allowed, FILTER = 2 * ALLOWED + 2 };

int main(int count, char **arguments) {
  struct sock_filter filter[FILTER], *next = filter;
  *next++ =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (unsigned at = 0; at < ALLOWED; at++) {
    *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[at], 0, 1);
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  struct sock_fprog program = {FILTER, filter};
  free(malloc(1)); /* what comes at the start of the library comes before the filter */
  setvbuf(stdout, NULL, _IONBF, 0); /* or it asks what it is */
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 2;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 3;
  return run_sites(count, arguments);
}
