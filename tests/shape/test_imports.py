"""What the library asks of the C library: little, as a library that is loaded before may have replaced each
function by one that allocates, and none that is a cancellation point."""

from pathlib import Path

import pytest
from results import captured

# POSIX.1-2024, System Interfaces, 2.9.5.2: what shall be one and what may be one; then what glibc adds
# (nptl's and sysdeps' SYSCALL_CANCEL).  Names that a header redirects (open64, __open_2) count as well.
SHALL = """
accept accept4 aio_suspend clock_nanosleep close connect creat dup3 fcntl fdatasync fsync getmsg getpmsg
lockf mq_receive mq_send mq_timedreceive mq_timedsend msgrcv msgsnd msync nanosleep open openat pause
poll posix_close ppoll pread pselect pthread_cond_clockwait pthread_cond_timedwait pthread_cond_wait
pthread_join pthread_testcancel putmsg putpmsg pwrite read readv recv recvfrom recvmsg select
sem_clockwait sem_timedwait sem_wait send sendmsg sendto sigpause sigsuspend sigtimedwait sigwait
sigwaitinfo sleep system tcdrain thrd_join thrd_sleep usleep wait waitid waitpid write writev
cnd_timedwait cnd_wait
"""
MAY = """
access asctime_r catclose catopen chmod chown closedir closelog ctermid ctime_r dbm_close dlclose dlopen
endgrent endhostent endnetent endprotoent endpwent endservent endutxent err errx faccessat fchmod
fchmodat fchown fchownat fclose fflush fgetc fgetpos fgets fgetwc fgetws fmtmsg fopen fpathconf fprintf
fputc fputs fputwc fputws fread freopen fscanf fseek fseeko fsetpos fstat fstatat ftell ftello ftw
futimens fwprintf fwrite fwscanf getaddrinfo getc getchar getcwd getdate getdelim getgrent getgrgid
getgrnam gethostent gethostname getline getlogin getnameinfo getopt getpwent getpwnam getpwuid gets
getutxent getw getwc getwchar glob iconv_close iconv_open ioctl link linkat lio_listio localtime lseek
lstat mkdir mkdtemp mkfifo mknod mkstemp mktime nftw opendir openlog pathconf pclose perror popen
posix_fadvise posix_fallocate posix_madvise posix_openpt posix_spawn posix_spawnp posix_trace_clear
printf psiginfo psignal pthread_rwlock_rdlock pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock
pthread_rwlock_wrlock ptsname putc putchar puts putw putwc putwchar readdir readlink remove rename
renameat rewind rewinddir scandir scanf seekdir semop strerror strftime symlink sync syslog tmpfile
tmpnam ttyname tzset ungetc ungetwc unlink utime utimes utimensat vdprintf vfprintf vfscanf vfwprintf
vprintf vscanf vwprintf wcsftime wordexp wprintf wscanf dprintf __printf_chk __fprintf_chk __vfprintf_chk
__dprintf_chk
"""
GLIBC = """
copy_file_range epoll_pwait epoll_pwait2 epoll_wait fallocate getrandom getentropy open_by_handle_at
preadv preadv2 pwritev pwritev2 process_vm_readv process_vm_writev recvmmsg sendmmsg splice
sync_file_range tee vmsplice wait3 wait4 msgctl
"""
SUFFIXES = ("", "64", "_2", "64_2", "_chk")

# Registration caches of communication libraries wrap these, to learn what becomes of memory.
OF_MEMORY = {"mmap", "munmap", "mremap", "madvise"}
# Called where the calling thread holds nothing (tests/failure/test_wrapping.py).
OF_THE_LINKER = {"dlsym", "dladdr", "dl_iterate_phdr", "_dl_find_object"}
OF_THREADS = set(
    """
    pthread_attr_init pthread_attr_setdetachstate pthread_attr_setstacksize pthread_getspecific
    pthread_key_create pthread_setspecific pthread_setcancelstate pthread_mutex_lock pthread_mutex_unlock
    """.split()
)
# The compiler calls them wherever it likes; a library that wraps them allocates nowhere (fortify/).
OF_THE_COMPILER = {"memcmp", "memcpy", "memmove", "memset"}
# What the C library knows of the process, or of a thread; and the end.
OF_THE_PROCESS = set(
    "__errno_location __environ environ __libc_single_threaded getauxval sysconf abort".split()
)
OF_CXX = {"_ZSt15get_new_handlerv", "_ZSt17__throw_bad_allocv"}
ALLOWED = OF_MEMORY | OF_THE_LINKER | OF_THREADS | OF_THE_COMPILER | OF_THE_PROCESS | OF_CXX

# malloc_info's stream is the caller's; cancellation is off meanwhile (os_cancel_off).
OF_A_STREAM = {"fprintf", "fputs", "fwrite"}


def cancellation_points() -> set[str]:
    names = (SHALL + MAY + GLIBC).split()
    return {prefix + name + suffix for name in names for prefix in ("", "__") for suffix in SUFFIXES}


def imports_of(library: Path) -> set[str]:
    words = ["nm", "-D", "--undefined-only", str(library)]
    lines = captured(words, check=True).stdout.splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


@pytest.mark.parametrize("which", ["lib", "debug_lib"])
def test_none_is_a_cancellation_point(which: str, request: pytest.FixtureRequest) -> None:
    imports = imports_of(request.getfixturevalue(which))
    assert "mmap" in imports, "nothing was read"
    assert imports & cancellation_points() <= OF_A_STREAM


@pytest.mark.parametrize("which", ["lib", "debug_lib"])
def test_few_functions_are_asked(which: str, request: pytest.FixtureRequest) -> None:
    """The kernel is asked by OS_CALL (src/os/os_linux.h): syscall(), clock_gettime() … are often wrapped."""
    assert imports_of(request.getfixturevalue(which)) <= ALLOWED | OF_A_STREAM


def test_streams_are_used_while_cancellation_is_off(root: Path) -> None:
    """Those of fortify/ are the program's own calls, which pass through there."""
    users = {
        path.name: path.read_text()
        for path in (root / "src").rglob("*.c")
        if any(f" {name}(" in path.read_text() for name in OF_A_STREAM)
    }
    assert set(users) <= {"override_glibc.c"}
    assert all("os_cancel_off()" in text for text in users.values())
