/* The service as an attacker would have it: inside the real sandbox, and then it tries things.
 *
 *   compromised [--user] [--container] [--without-unshare] [--level=auto|strict|none]
 * [--layers=BITS] ATTACK
 *
 * Exit code 0: the attack worked. 1: refused with an errno. 2: wrong usage. 3: the sandbox refused
 * to be entered. Killed by SIGSYS: the filter. What is missing of the sandbox goes to stdout. */
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "service/sandbox.h"
#include "tests/service/container.h"

enum { WORKED = 0, REFUSED = 1, USAGE = 2, NOT_ENTERED = 3, NOBODY = 65534 };

static pid_t host_pid;

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
    return open_path("/tmp/memlog-compromised", O_CREAT | O_WRONLY);
}

static long read_proc(void) {
    return open_path("/proc/self/status", O_RDONLY);
}

static long read_host_memory_map(void) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)host_pid);
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
    return ptrace(PTRACE_SEIZE, host_pid, NULL, NULL);
}

static long read_host_memory(void) {
    char here[8];
    struct iovec local = {here, sizeof(here)};
    struct iovec remote = {(void *)(uintptr_t)&host_pid, sizeof(here)};
    return process_vm_readv(host_pid, &local, 1, &remote, 1, 0);
}

static long kill_host(void) {
    return kill(host_pid, SIGURG);
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

static const struct {
    const char *name;
    long (*attempt)(void);
} attacks[] = {
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
    {"nothing", nothing},
};

static int become_user(void) {
    return setgroups(0, NULL) == 0 && setresgid(NOBODY, NOBODY, NOBODY) == 0 &&
                   setresuid(NOBODY, NOBODY, NOBODY) == 0
               ? 0
               : -1;
}

static int attack(const char *name) {
    for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
        if (strcmp(attacks[i].name, name) == 0) {
            return attacks[i].attempt() < 0 ? REFUSED : WORKED;
        }
    }
    return USAGE;
}

int main(int argc, char **argv) {
    struct ml_sandbox_options options = {0};
    const char *name = "";
    host_pid = getppid();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--user") == 0) {
            if (become_user() != 0) {
                return USAGE;
            }
        } else if (strcmp(argv[i], "--container") == 0) {
            if (container_enter() != 0) {
                return USAGE;
            }
        } else if (strcmp(argv[i], "--without-unshare") == 0) {
            if (container_enter_without_unshare() != 0) {
                return USAGE;
            }
        } else if (strncmp(argv[i], "--level=", 8) == 0) {
            if (ml_sandbox_level_parse(argv[i] + 8, &options.level) != ML_OK) {
                return USAGE;
            }
        } else if (strncmp(argv[i], "--layers=", 9) == 0) {
            options.left_out_layers = ~(uint32_t)strtoul(argv[i] + 9, NULL, 0);
        } else {
            name = argv[i];
        }
    }
    /* As in service/main.c: the loop is there before the walls are. */
    struct ev_loop *loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    struct ml_sandbox_report report;
    const enum ml_status status = ml_sandbox_enter(&options, &report);
    const ssize_t written = write(STDOUT_FILENO, report.missing, strlen(report.missing));
    if (status != ML_OK || loop == NULL || written < 0) {
        _exit(NOT_ENTERED);
    }
    _exit(attack(name));
}
