/* Programs that look at their own memory and limits, or change them, run bare and under memlog
 * (tests/e2e/limits_test.py). What must be the same is on stdout, what is compared with care
 * goes to stderr. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAYS = 16, PIECE_BYTES = 64 << 10, STATUS_BYTES = 8192, NOBODY = 65534 };

static void *volatile kept;

/* VmSize, VmData, VmLck ... in bytes, without the heap. */
static uint64_t status_of(const char *key) {
    static char text[STATUS_BYTES];
    const int fd = (int)syscall(SYS_open, "/proc/self/status", 0);
    const ssize_t got = read(fd, text, sizeof(text) - 1);
    (void)close(fd);
    text[got > 0 ? got : 0] = 0;
    const char *at = strstr(text, key);
    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10) << 10;
}

static void say_sizes(void) {
    dprintf(
        2,
        "%llu %llu %llu\n",
        (unsigned long long)status_of("VmSize:"),
        (unsigned long long)status_of("VmData:"),
        (unsigned long long)status_of("VmLck:")
    );
}

static void set_limit(__rlimit_resource_t resource, uint64_t bytes) {
    const struct rlimit limit = {bytes, bytes};
    if (setrlimit(resource, &limit) != 0) {
        perror("setrlimit");
        exit(1);
    }
}

/* ---- call paths: WAYS functions that call each other */

static uint64_t paths_refused;

static void go_on(unsigned depth);

#define WAY(n)                                                                                     \
    static __attribute__((noipa)) void way_##n(unsigned depth) {                                   \
        go_on(depth);                                                                              \
        __asm__ volatile("" ::: "memory");                                                         \
    }
/* clang-format off */
WAY(0)
WAY(1)
WAY(2)
WAY(3)
WAY(4)
WAY(5)
WAY(6)
WAY(7)
WAY(8)
WAY(9)
WAY(10)
WAY(11)
WAY(12)
WAY(13)
WAY(14)
WAY(15)
/* clang-format on */

static void (*const ways[WAYS])(unsigned) = {
    way_0,
    way_1,
    way_2,
    way_3,
    way_4,
    way_5,
    way_6,
    way_7,
    way_8,
    way_9,
    way_10,
    way_11,
    way_12,
    way_13,
    way_14,
    way_15};

/* A block at each path's end, which stays: 24 bytes, and 16 more for each of the last way's
 * number. */
static __thread unsigned last_way;

static __attribute__((noipa)) void go_on(unsigned depth) {
    if (depth == 0) {
        void *block = malloc(24 + 16 * (size_t)last_way);
        paths_refused += block == NULL;
        kept = block;
        return;
    }
    for (unsigned way = 0; way < WAYS; way++) {
        last_way = way;
        ways[way](depth - 1);
    }
}

static int paths(unsigned depth) {
    go_on(depth);
    printf("paths to depth %u, refused %llu\n", depth, (unsigned long long)paths_refused);
    return 0;
}

/* ---- the programs */

/* `as` or `data`: a limit, then a block of so many MiB. */
static int limited(__rlimit_resource_t resource, uint64_t limit_mib, uint64_t block_mib) {
    kept = malloc(1);
    set_limit(resource, limit_mib << 20);
    kept = malloc(block_mib << 20);
    printf("%s\n", kept != NULL ? "there" : "refused");
    return 0;
}

/* So much as the program has now, and `more_kib`: how many pieces it gets. */
static int headroom(__rlimit_resource_t resource, const char *key, uint64_t more_kib) {
    kept = malloc(1);
    set_limit(resource, status_of(key) + (more_kib << 10));
    unsigned pieces = 0;
    while (mmap(NULL, PIECE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
           MAP_FAILED) {
        pieces++;
    }
    printf("%u pieces\n", pieces);
    return 0;
}

static void become_nobody(void) {
    set_limit(RLIMIT_MEMLOCK, 8 << 20);
    if (setresuid(NOBODY, NOBODY, NOBODY) != 0) {
        perror("setresuid");
        exit(1);
    }
}

static int lock(int flags) {
    kept = malloc(1);
    const int result = mlockall(flags);
    printf("mlockall %d, errno %d\n", result, result == 0 ? 0 : errno);
    kept = malloc(1 << 20);
    printf("%s\n", kept != NULL ? "there" : "refused");
    say_sizes();
    return 0;
}

static pthread_barrier_t all_there;

static void *thread(void *argument) {
    (void)argument;
    void *block = malloc(100);
    (void)pthread_barrier_wait(&all_there);
    (void)pthread_barrier_wait(&all_there);
    return block;
}

static int threads(unsigned count) {
    static pthread_t made[4096];
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, PIECE_BYTES);
    (void)pthread_barrier_init(&all_there, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        if (pthread_create(&made[i], &attributes, thread, NULL) != 0) {
            return 1;
        }
    }
    (void)pthread_barrier_wait(&all_there);
    say_sizes();
    (void)pthread_barrier_wait(&all_there);
    for (unsigned i = 0; i < count; i++) {
        (void)pthread_join(made[i], NULL);
    }
    printf("%u threads\n", count);
    return 0;
}

/* The same paths again in a child of a process that has grown. */
static int child_paths(unsigned depth) {
    (void)paths(depth);
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        (void)paths(depth);
        (void)fflush(stdout);
        _exit(0);
    }
    int status = 0;
    (void)waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void *thread_paths(void *argument) {
    go_on(3);
    return argument;
}

/* Threads whose paths make tables grow, while children are forked that have paths of their own. */
static int fork_storm(unsigned children) {
    enum { GROWERS = 3 };
    pthread_t growers[GROWERS];
    int wrong = 0;
    for (unsigned i = 0; i < GROWERS; i++) {
        wrong += pthread_create(&growers[i], NULL, thread_paths, NULL);
    }
    for (unsigned i = 0; i < children; i++) {
        int status = 0;
        const pid_t child = fork();
        if (child == 0) {
            go_on(2);
            _exit(0);
        }
        (void)waitpid(child, &status, 0);
        wrong += status;
    }
    for (unsigned i = 0; i < GROWERS; i++) {
        wrong += pthread_join(growers[i], NULL);
    }
    printf("%u children, %d wrong\n", children, wrong);
    return 0;
}

/* A filter that kills for this call, then paths. */
static int filtered(int number, unsigned depth) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
        perror("seccomp");
        return 1;
    }
    return paths(depth);
}

static int usage(void) {
    (void)fprintf(stderr, "limited [nobody] WHAT [NUMBER...]\n");
    return 2;
}

int main(int argc, char *argv[]) {
    if (argc > 1 && strcmp(argv[1], "nobody") == 0) {
        become_nobody();
        argc--;
        argv++;
    }
    const char *what = argc > 1 ? argv[1] : "";
    const uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    const uint64_t second = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    if (strcmp(what, "sizes") == 0) {
        kept = malloc(1);
        say_sizes();
        return 0;
    }
    if (strcmp(what, "as") == 0 || strcmp(what, "data") == 0) {
        return limited(what[0] == 'a' ? RLIMIT_AS : RLIMIT_DATA, first, second);
    }
    if (strcmp(what, "as-headroom") == 0) {
        return headroom(RLIMIT_AS, "VmSize:", first);
    }
    if (strcmp(what, "data-headroom") == 0) {
        return headroom(RLIMIT_DATA, "VmData:", first);
    }
    if (strcmp(what, "lock") == 0) {
        return lock((int)first);
    }
    if (strcmp(what, "locked-paths") == 0) {
        (void)lock((int)first);
        return paths((unsigned)second);
    }
    if (strcmp(what, "fork-storm") == 0) {
        return fork_storm((unsigned)first);
    }
    if (strcmp(what, "threads") == 0) {
        return threads((unsigned)first);
    }
    if (strcmp(what, "paths") == 0) {
        return paths((unsigned)first);
    }
    if (strcmp(what, "child-paths") == 0) {
        return child_paths((unsigned)first);
    }
    if (strcmp(what, "limited-paths") == 0) {
        set_limit(RLIMIT_DATA, status_of("VmData:") + (second << 20));
        return paths((unsigned)first);
    }
    if (strcmp(what, "no-mremap-paths") == 0) {
        return filtered(SYS_mremap, (unsigned)first);
    }
    if (strcmp(what, "no-mmap-paths") == 0) {
        return filtered(SYS_mmap, (unsigned)first);
    }
    if (strcmp(what, "no-prlimit-paths") == 0) {
        return filtered(SYS_prlimit64, (unsigned)first);
    }
    return usage();
}
