"""The system calls that an entrant's program may make, grouped by what they are for.

Left out on purpose, and so refused: `io_uring_*` (its operations pass filters by), `ptrace`,
`process_vm_*`, `pidfd_getfd` and `kcmp` (other processes' insides), `add_key`, `keyctl` and
`request_key` (keyrings are not namespaced), `bpf`, `perf_event_open`, `userfaultfd` and
`memfd_secret` (kernel attack surface), `mount`, `umount2`, `pivot_root`, `move_mount`, `open_tree`,
`fs*` of the new mount interface, `chroot`, `unshare` and `setns` (namespaces), `*setxattr`
(a side channel past the collector), `open_by_handle_at` and `name_to_handle_at` (paths past the
mount namespace), `kexec_*`, `*_module`, `reboot`, `swap*`, `acct`, `quotactl`, `syslog`, clock and
host-name setters, and `socketcall`, which hides its family from a filter.
"""

from __future__ import annotations

from typing import Final


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ALLOWED_SYSCALLS: Final[dict[str, tuple[str, ...]]] = {
    # A program starts, asks who it is, sets up its threads and ends.
    "process": _names(
        """
        arch_prctl capget capset execve execveat exit exit_group fork getegid geteuid getgid
        getgroups getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit
        getrusage getsid gettid getuid ioprio_get prctl prlimit64 rseq set_robust_list
        get_robust_list set_tid_address setpgid setpriority setrlimit setsid sysinfo times umask
        uname vfork wait4 waitid getcpu pidfd_open
        """
    ),
    # Dropping rights is always possible; without capabilities nothing can be gained here.
    "identity": _names(
        """
        setfsgid setfsuid setgid setgroups setregid setresgid setresuid setreuid setuid
        """
    ),
    # Waiting for one another: threads, OpenMP, multiprocessing.
    "synchronisation": _names(
        """
        futex futex_requeue futex_wait futex_waitv futex_wake membarrier sched_get_priority_max
        sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
        sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam sched_setscheduler
        sched_yield semctl semget semop semtimedop
        """
    ),
    "signals": _names(
        """
        alarm getitimer kill pause pidfd_send_signal restart_syscall rt_sigaction rt_sigpending
        rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
        rt_tgsigqueueinfo setitimer sigaltstack signalfd signalfd4 tgkill tkill
        """
    ),
    "memory": _names(
        """
        brk madvise memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap mseal msync
        munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages
        """
    ),
    # System V and POSIX shared memory and queues, private to the container.
    "shared_memory": _names(
        """
        mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend mq_unlink msgctl msgget
        msgrcv msgsnd shmat shmctl shmdt shmget
        """
    ),
    "clocks": _names(
        """
        clock_getres clock_gettime clock_nanosleep gettimeofday nanosleep time timer_create
        timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
        timerfd_settime getrandom
        """
    ),
    # Opening, naming and removing files; what may be changed is decided by the mounts.
    "files": _names(
        """
        access chdir chmod chown close close_range creat dup dup2 dup3 faccessat faccessat2 fchdir
        fchmod fchmodat fchmodat2 fchown fchownat flock fstat fstatfs futimesat getcwd getdents
        getdents64 inotify_add_watch inotify_init inotify_init1 inotify_rm_watch lchown link
        linkat lstat mkdir mkdirat mknod mknodat newfstatat open openat openat2 readlink
        readlinkat rename renameat renameat2 rmdir stat statfs statx symlink symlinkat unlink
        unlinkat utime utimensat utimes
        """
    ),
    "file_attributes_read": _names(
        """
        fgetxattr flistxattr getxattr lgetxattr listxattr llistxattr
        """
    ),
    "file_contents": _names(
        """
        cachestat copy_file_range fadvise64 fallocate fcntl fdatasync fsync ftruncate ioctl lseek
        pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readv sendfile sync
        sync_file_range syncfs truncate write writev
        """
    ),
    "pipes_and_events": _names(
        """
        epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2
        pipe pipe2 poll ppoll pselect6 select
        """
    ),
    # On sockets that could be opened at all; the families are rules of their own.
    "sockets": _names(
        """
        accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg
        recvmsg sendmmsg sendmsg sendto setsockopt shutdown
        """
    ),
}
"""Purpose → names. `clone`, `personality`, `socket` and `socketpair` have conditions, elsewhere."""

ABSENT_SYSCALLS: Final[tuple[str, ...]] = ("clone3", "splice", "tee", "vmsplice")
"""Calls answered with ENOSYS, so that libraries take the older way.

The flags of `clone3` lie in memory, where no filter sees the namespaces it asks for; C libraries
then use `clone`. `splice`, `tee` and `vmsplice` have carried writes into the page cache of
read-only files, which here are sealed clips and shared image layers.
"""
