/* Mappings made where nobody looks for them, and very many of them. */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/oracle/maps/claims.h"

enum { MANY = 10000 };

MAPS_PATH static void many(void);
MAPS_PATH static void raw_call(void);
MAPS_PATH static void raw_unmap(void);
MAPS_PATH static void raw_over(void);
MAPS_PATH static void in_a_handler(void);
MAPS_PATH static void in_a_vfork_child(void);
MAPS_PATH static void by_brk(void);
MAPS_PATH static void by_malloc(void);
MAPS_PATH static void heap_without_brk(void);
MAPS_PATH static void by_malloc_in_parts(void);
MAPS_PATH void on_signal(int number);
MAPS_PATH void child_of_vfork(void);

static char *kept;

/* Neighbours differ in what may be done with them, or the kernel would join them. */
MAPS_PATH static void many(void) {
    static char *starts[MANY];
    for (size_t i = 0; i < MANY; i++) {
        starts[i] = map_pages(1);
        if (i % 3 != 0) {
            touch(starts[i], MAPS_PAGE);
        }
        if (i % 2 != 0 && mprotect(starts[i], MAPS_PAGE, PROT_READ) != 0) {
            claims_die("mprotect failed");
        }
    }
    for (size_t i = 0; i < MANY; i++) {
        if (i % 7 == 0) {
            (void)munmap(starts[i], MAPS_PAGE);
        } else {
            claim_pages("map_pages<many", starts[i], 1, i % 3 != 0);
        }
    }
}

static char *map_raw(char *wanted, size_t pages) {
    const long at = syscall(
        SYS_mmap,
        wanted,
        pages * MAPS_PAGE,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | (wanted == NULL ? 0 : MAP_FIXED),
        -1,
        0
    );
    if (at < 0) {
        claims_die("mmap by syscall failed");
    }
    return (char *)at; // NOLINT(performance-no-int-to-ptr): what the kernel answered
}

/* Nobody saw it: it is memory without an owner, and counted as such. */
MAPS_PATH static void raw_call(void) {
    char *at = map_raw(NULL, 70);
    touch(at, 31 * MAPS_PAGE);
    claim((struct claim
    ){.kind = "unhooked",
      .start = at,
      .mapped_bytes = (size_t)70 * MAPS_PAGE,
      .private_bytes = (long)31 * MAPS_PAGE});
}

/* What was seen is there no more, without a call that anybody saw. */
MAPS_PATH static void raw_unmap(void) {
    char *at = map_pages(80);
    touch(at, 80 * MAPS_PAGE);
    char *gone = map_pages(40);
    touch(gone, 40 * MAPS_PAGE);
    (void)syscall(SYS_munmap, at + 30 * MAPS_PAGE, (size_t)20 * MAPS_PAGE);
    (void)syscall(SYS_munmap, gone, (size_t)40 * MAPS_PAGE);
    claim_pages("map_pages<raw_unmap", at, 30, 30);
    claim_pages("map_pages<raw_unmap", at + 50 * MAPS_PAGE, 30, 30);
}

/* Unseen, other memory came to stand where a seen mapping stood. Whoever was seen keeps it. */
MAPS_PATH static void raw_over(void) {
    char *at = map_pages(60);
    touch(at, 60 * MAPS_PAGE);
    const long over = syscall(
        SYS_mmap,
        at + 20 * MAPS_PAGE,
        (size_t)10 * MAPS_PAGE,
        PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
        -1,
        0
    );
    if (over < 0) {
        claims_die("mmap by syscall failed");
    }
    touch(at + 20 * MAPS_PAGE, 4 * MAPS_PAGE);
    claim_pages("map_pages<raw_over", at, 20, 20);
    claim_pages("map_pages<raw_over", at + 20 * MAPS_PAGE, 10, 4);
    claim_pages("map_pages<raw_over", at + 30 * MAPS_PAGE, 30, 30);
}

MAPS_PATH void on_signal(int number) {
    (void)number;
    kept = map_pages(26);
    touch(kept, 13 * MAPS_PAGE);
}

MAPS_PATH static void in_a_handler(void) {
    struct sigaction action = {.sa_handler = on_signal};
    if (sigaction(SIGUSR1, &action, NULL) != 0 || raise(SIGUSR1) != 0) {
        claims_die("no signal");
    }
    claim_pages("map_pages<on_signal", kept, 26, 13);
}

MAPS_PATH void child_of_vfork(void) {
    kept = map_pages(26);
    touch(kept, 13 * MAPS_PAGE);
}

/* The child has the parent's memory, and its thread's variables, too: nobody can record for it what
 * it maps and leaves behind. */
MAPS_PATH static void in_a_vfork_child(void) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    const pid_t pid = vfork(); // NOLINT(clang-analyzer-security.insecureAPI.vfork): the case
    if (pid == 0) {
        child_of_vfork(); // NOLINT(clang-analyzer-unix.Vfork): the case
        _exit(0);
    }
#pragma GCC diagnostic pop
    if (pid < 0 || waitpid(pid, NULL, 0) != pid || kept == NULL) {
        claims_die("vfork failed");
    }
    claim((struct claim
    ){.kind = "unhooked",
      .start = kept,
      .mapped_bytes = (size_t)26 * MAPS_PAGE,
      .private_bytes = (long)13 * MAPS_PAGE});
}

/* [heap] is the allocator's, also where the program moved its end by itself. */
MAPS_PATH static void by_brk(void) {
    char *block = malloc(1000);
    char *at = sbrk((intptr_t)64 * MAPS_PAGE);
    if (block == NULL || (intptr_t)at == -1) {
        claims_die("sbrk failed");
    }
    touch(at, 40 * MAPS_PAGE);
    char *first = at + (-(uintptr_t)at & (MAPS_PAGE - 1));
    claim((struct claim
    ){.kind = "slack",
      .start = first + MAPS_PAGE,
      .mapped_bytes = (size_t)60 * MAPS_PAGE,
      .private_bytes = CLAIM_KERNEL});
}

/* Where the program's break cannot move, glibc maps a megabyte at a time, unseen. What is free of
 * it is the allocator's as well. */
MAPS_PATH static void heap_without_brk(void) {
    enum { BLOCKS = 3000, BYTES = 3000 };
    static char *blocks[BLOCKS];
    char *end = sbrk(0);
    char *wall = end + (-(uintptr_t)end & (MAPS_PAGE - 1));
    wall =
        mmap(wall, MAPS_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (wall == MAP_FAILED) {
        claims_die("something stands behind the heap");
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(BYTES);
        touch(blocks[i], BYTES);
    }
    for (size_t i = BLOCKS / 4; i < BLOCKS - 1; i++) {
        free(blocks[i]);
    }
    claim_pages("heap_without_brk", wall, 1, 0);
}

/* A block of its own mapping: on its pages it is the heap's, and the program never mapped it. */
MAPS_PATH static void by_malloc(void) {
    enum { BYTES = 3 << 20 };
    char *block = malloc(BYTES);
    if (block == NULL) {
        claims_die("malloc failed");
    }
    touch(block, 100 * MAPS_PAGE);
    char *first = block + (-(uintptr_t)block & (MAPS_PAGE - 1));
    claim((struct claim
    ){.kind = "heap",
      .start = first,
      .mapped_bytes = BYTES - MAPS_PAGE,
      .private_bytes = CLAIM_KERNEL});
}

/* The kernel has two mappings of it now, and the block begins in the first. */
MAPS_PATH static void by_malloc_in_parts(void) {
    enum { BYTES = 8 << 20 };
    char *block = malloc(BYTES);
    if (block == NULL) {
        claims_die("malloc failed");
    }
    char *first = block + (-(uintptr_t)block & (MAPS_PAGE - 1));
    (void)madvise(first + 10 * MAPS_PAGE, (size_t)1000 * MAPS_PAGE, MADV_NOHUGEPAGE);
    touch(block, (size_t)800 * MAPS_PAGE);
    claim((struct claim
    ){.kind = "heap",
      .start = first,
      .mapped_bytes = BYTES - MAPS_PAGE,
      .private_bytes = CLAIM_KERNEL});
}

bool odd_case(const char *name) {
    static const struct maps_case cases[] = {
        {"many", many},
        {"raw_call", raw_call},
        {"raw_unmap", raw_unmap},
        {"raw_over", raw_over},
        {"in_a_handler", in_a_handler},
        {"in_a_vfork_child", in_a_vfork_child},
        {"by_brk", by_brk},
        {"by_malloc", by_malloc},
        {"heap_without_brk", heap_without_brk},
        {"by_malloc_in_parts", by_malloc_in_parts},
    };
    return maps_run(cases, sizeof(cases) / sizeof(*cases), name);
}
