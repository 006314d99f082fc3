"""What the library asks of the C library: none of it may be a cancellation point.

The kernel is asked through syscall(), which is none, or through functions that only pass a call on."""

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
    assert "syscall" in imports, "nothing was read, or the kernel is asked in another way"
    assert imports & cancellation_points() <= OF_A_STREAM


def test_streams_are_used_while_cancellation_is_off(root: Path) -> None:
    """Those of fortify/ are the program's own calls, which pass through there."""
    users = {
        path.name: path.read_text()
        for path in (root / "src").rglob("*.c")
        if any(f" {name}(" in path.read_text() for name in OF_A_STREAM)
    }
    assert set(users) <= {"override_glibc.c"}
    assert all("os_cancel_off()" in text for text in users.values())
