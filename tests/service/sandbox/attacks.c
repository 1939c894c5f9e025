#include "tests/service/sandbox/attacks.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static pid_t victim;

static long open_path(const char *path, int flags) {
    return open(path, flags, 0600);
}

static long open_file(void) {
    return open_path("/etc/passwd", O_RDONLY);
}

static long open_root(void) {
    /* Reading the empty root itself is Landlock's to refuse. */
    return open_path("/", O_RDONLY | O_DIRECTORY);
}

static long create_file(void) {
    static const char path[] = "/tmp/memlog-compromised";
    const long answer = open_path(path, O_CREAT | O_WRONLY);
    return answer < 0 ? answer : unlink(path);
}

static long read_proc(void) {
    return open_path("/proc/self/status", O_RDONLY);
}

static long read_host_memory_map(void) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)victim);
    return open_path(path, O_RDONLY);
}

static long make_socket(void) {
    return socket(AF_INET, SOCK_STREAM, 0);
}

static long make_unix_socket(void) {
    return socket(AF_UNIX, SOCK_STREAM, 0);
}

/* To the test's own listening socket, whose port is in the environment: the network works. */
static long connect_tcp(void) {
    const char *port = getenv("COMPROMISED_PORT");
    struct sockaddr_in address = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)strtoul(port != NULL ? port : "1", NULL, 10)),
        .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd < 0 ? fd : connect(fd, (const struct sockaddr *)&address, sizeof(address));
}

static long run_program(void) {
    char *const words[] = {(char[]){"true"}, NULL};
    return execve("/bin/true", words, words + 1);
}

static long trace_host(void) {
    return ptrace(PTRACE_SEIZE, victim, NULL, NULL);
}

static long read_host_memory(void) {
    char here[8];
    struct iovec local = {here, sizeof(here)};
    struct iovec remote = {(void *)(uintptr_t)&victim, sizeof(here)};
    return process_vm_readv(victim, &local, 1, &remote, 1, 0);
}

static long kill_host(void) {
    return kill(victim, SIGURG);
}

static long kill_self(void) {
    return kill(getpid(), SIGURG);
}

static long new_namespace(void) {
    return unshare(CLONE_NEWUSER);
}

static long new_process(void) {
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    return child;
}

/* Works where no sandbox is, and stays: never try it there. */
static long new_mount(void) {
    return mount("none", "/", "tmpfs", 0, NULL);
}

static long map_code(void) {
    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
               ? -1
               : 0;
}

static long make_code(void) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? -1 : mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static long make_memfd(void) {
    return memfd_create("x", 0);
}

static long start_uring(void) {
    uint8_t parameters[256] = {0};
    return syscall(SYS_io_uring_setup, 8, parameters);
}

static long load_bpf(void) {
    uint8_t attributes[128] = {0};
    return syscall(SYS_bpf, 0, attributes, sizeof(attributes));
}

static long raise_limit(void) {
    const struct rlimit limit = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    return setrlimit(RLIMIT_CORE, &limit);
}

static long ask_path(void) {
    return syscall(SYS_newfstatat, -1, "/etc/passwd", (uint8_t[256]){0}, 0);
}

static long terminal_input(void) {
    return syscall(SYS_ioctl, 2, 0x5412 /* TIOCSTI */, "x");
}

/* The 32-bit way into the kernel, where call 5 is open. */
static long other_architecture(void) {
#ifdef __x86_64__
    long answer = 0;
    __asm__ volatile("int $0x80" : "=a"(answer) : "a"(20L) : "memory", "r8", "r9", "r10", "r11");
    return answer;
#else
    return -1;
#endif
}

static long nothing(void) {
    return 0;
}

/* ---- of other processes: `victim` is the parent, a host or a shell */

static long steal_descriptor(void) {
    const long pidfd = syscall(SYS_pidfd_open, victim, 0);
    return pidfd < 0 ? pidfd : syscall(SYS_pidfd_getfd, pidfd, 2, 0);
}

static long signal_by_pidfd(void) {
    const long pidfd = syscall(SYS_pidfd_open, victim, 0);
    return pidfd < 0 ? pidfd : syscall(SYS_pidfd_send_signal, pidfd, SIGURG, NULL, 0);
}

static long signal_by_thread(void) {
    return syscall(SYS_tgkill, victim, victim, SIGURG);
}

static long signal_queued(void) {
    return sigqueue(victim, SIGURG, (union sigval){.sival_int = 1});
}

/* What is asked of a descriptor may end in a signal to whom one likes. */
static long signal_by_owner(void) {
    return fcntl(STDOUT_FILENO, F_SETOWN, victim);
}

static long write_host_memory(void) {
    char here[8] = {0};
    static char there[8];
    struct iovec local = {here, sizeof(here)};
    struct iovec remote = {there, sizeof(there)};
    return process_vm_writev(victim, &local, 1, &remote, 1, 0);
}

static long open_host_memory(void) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)victim);
    return open_path(path, O_RDONLY);
}

static long limit_host(void) {
    struct rlimit limit;
    const struct rlimit low = {.rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY};
    return prlimit(victim, RLIMIT_FSIZE, NULL, &limit) == 0 && limit.rlim_cur == low.rlim_cur
               ? -1
               : prlimit(victim, RLIMIT_FSIZE, &limit, NULL);
}

static long slow_host_down(void) {
    return setpriority(PRIO_PROCESS, (id_t)victim, getpriority(PRIO_PROCESS, (id_t)victim));
}

static long pin_host(void) {
    cpu_set_t cpus;
    return sched_getaffinity(victim, sizeof(cpus), &cpus) != 0
               ? -1
               : sched_setaffinity(victim, sizeof(cpus), &cpus);
}

static long compare_with_host(void) {
    return syscall(SYS_kcmp, getpid(), victim, 2 /* KCMP_FILES */, 0, 0);
}

static long advise_host(void) {
    const long pidfd = syscall(SYS_pidfd_open, victim, 0);
    struct iovec part = {(void *)(uintptr_t)0x1000, 0};
    return pidfd < 0 ? pidfd : syscall(SYS_process_madvise, pidfd, &part, 1, 20 /* MADV_COLD */, 0);
}

/* ---- of the kernel */

static long run_memory(void) {
    char *const words[] = {(char[]){"x"}, NULL};
    const int fd = memfd_create("x", MFD_CLOEXEC);
    return fd < 0 ? fd : syscall(SYS_execveat, fd, "", words, words + 1, AT_EMPTY_PATH);
}

static long new_thread_of_its_own(void) {
    uint64_t arguments[11] = {0};
    arguments[4] = SIGCHLD;
    const long child = syscall(SYS_clone3, arguments, sizeof(arguments));
    if (child == 0) {
        _exit(0);
    }
    return child;
}

static long enter_namespace(void) {
    const long pidfd = syscall(SYS_pidfd_open, victim, 0);
    return pidfd < 0 ? pidfd : setns((int)pidfd, CLONE_NEWNET);
}

static long watch_faults(void) {
    return syscall(SYS_userfaultfd, O_CLOEXEC);
}

static long read_keys(void) {
    return syscall(SYS_keyctl, 0 /* KEYCTL_GET_KEYRING_ID */, -3, 0);
}

static long add_a_key(void) {
    return syscall(SYS_add_key, "user", "memlog-compromised", "x", 1, -2 /* this process's */);
}

static long watch_performance(void) {
    uint8_t attributes[128] = {[4] = 128};
    return syscall(SYS_perf_event_open, attributes, 0, -1, -1, 0);
}

static long share_memory(void) {
    const int id = shmget(IPC_PRIVATE, 4096, 0600);
    return id < 0 ? id : shmctl(id, IPC_RMID, NULL);
}

static long send_to_a_queue(void) {
    const int id = msgget(IPC_PRIVATE, 0600);
    return id < 0 ? id : msgctl(id, IPC_RMID, NULL);
}

static long make_socket_pair(void) {
    int fds[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
}

static long lock_memory(void) {
    return mlockall(MCL_CURRENT);
}

static long leave_the_root(void) {
    return chroot("/");
}

static long move_the_root(void) {
    return syscall(SYS_pivot_root, ".", ".");
}

static long open_a_tree(void) {
    return syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */);
}

static long open_by_handle(void) {
    uint64_t handle[4] = {8};
    return syscall(SYS_open_by_handle_at, AT_FDCWD, handle, O_RDONLY);
}

static long load_module(void) {
    return syscall(SYS_finit_module, -1, "", 0);
}

static long log_of_the_kernel(void) {
    return syscall(SYS_syslog, 10 /* size of its buffer */, NULL, 0);
}

static long change_the_clock(void) {
    struct timespec now;
    return clock_gettime(CLOCK_REALTIME, &now) != 0 ? -1 : clock_settime(CLOCK_REALTIME, &now);
}

static long be_traced(void) {
    return prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
}

static long be_dumped(void) {
    return prctl(PR_SET_DUMPABLE, 1);
}

static long type_by_selection(void) {
    return syscall(SYS_ioctl, 2, 0x541C /* TIOCLINUX */, (char[]){2, 0});
}

static long move_what_it_holds(void) {
    return syscall(SYS_sendfile, STDERR_FILENO, STDOUT_FILENO, NULL, 0);
}

static long make_device(void) {
    static const char path[] = "/tmp/memlog-compromised-device";
    const int answer = mknod(path, S_IFCHR | 0600, makedev(1, 3));
    return answer < 0 ? answer : unlink(path);
}

static long change_mode(void) {
    return chmod("/tmp", 01777);
}

static long make_link(void) {
    static const char path[] = "/tmp/memlog-compromised-link";
    const int answer = symlink("/etc/passwd", path);
    return answer < 0 ? answer : unlink(path);
}

const struct attack attacks[] = {
    {"open_file", open_file},
    {"open_root", open_root},
    {"create_file", create_file},
    {"read_proc", read_proc},
    {"read_host_memory_map", read_host_memory_map},
    {"make_socket", make_socket},
    {"make_unix_socket", make_unix_socket},
    {"connect_tcp", connect_tcp},
    {"run_program", run_program},
    {"trace_host", trace_host},
    {"read_host_memory", read_host_memory},
    {"kill_host", kill_host},
    {"kill_self", kill_self},
    {"new_namespace", new_namespace},
    {"new_process", new_process},
    {"new_mount", new_mount},
    {"map_code", map_code},
    {"make_code", make_code},
    {"make_memfd", make_memfd},
    {"start_uring", start_uring},
    {"load_bpf", load_bpf},
    {"raise_limit", raise_limit},
    {"ask_path", ask_path},
    {"terminal_input", terminal_input},
    {"other_architecture", other_architecture},
    {"steal_descriptor", steal_descriptor},
    {"signal_by_pidfd", signal_by_pidfd},
    {"signal_by_thread", signal_by_thread},
    {"signal_queued", signal_queued},
    {"signal_by_owner", signal_by_owner},
    {"write_host_memory", write_host_memory},
    {"open_host_memory", open_host_memory},
    {"limit_host", limit_host},
    {"slow_host_down", slow_host_down},
    {"pin_host", pin_host},
    {"compare_with_host", compare_with_host},
    {"advise_host", advise_host},
    {"run_memory", run_memory},
    {"new_thread_of_its_own", new_thread_of_its_own},
    {"enter_namespace", enter_namespace},
    {"watch_faults", watch_faults},
    {"read_keys", read_keys},
    {"add_a_key", add_a_key},
    {"watch_performance", watch_performance},
    {"share_memory", share_memory},
    {"send_to_a_queue", send_to_a_queue},
    {"make_socket_pair", make_socket_pair},
    {"lock_memory", lock_memory},
    {"leave_the_root", leave_the_root},
    {"move_the_root", move_the_root},
    {"open_a_tree", open_a_tree},
    {"open_by_handle", open_by_handle},
    {"load_module", load_module},
    {"log_of_the_kernel", log_of_the_kernel},
    {"change_the_clock", change_the_clock},
    {"be_traced", be_traced},
    {"be_dumped", be_dumped},
    {"type_by_selection", type_by_selection},
    {"move_what_it_holds", move_what_it_holds},
    {"make_device", make_device},
    {"change_mode", change_mode},
    {"make_link", make_link},
    {"nothing", nothing},
};
const size_t attacks_count = sizeof(attacks) / sizeof(attacks[0]);

enum attack_end attack_try(const char *name, pid_t whose) {
    victim = whose;
    for (size_t i = 0; i < attacks_count; i++) {
        if (strcmp(attacks[i].name, name) == 0) {
            return attacks[i].attempt() < 0 ? ATTACK_REFUSED : ATTACK_WORKED;
        }
    }
    return ATTACK_UNKNOWN;
}
