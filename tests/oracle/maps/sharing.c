/* Memory that several processes have: who pays for which page. */
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "tests/oracle/maps/claims.h"

MAPS_PATH static void copied_on_write(void);
MAPS_PATH static void shared_by_fork(void);
MAPS_PATH static void child_unmaps(void);
MAPS_PATH static void child_maps(void);
MAPS_PATH static void memfd_shared(void);
MAPS_PATH static void memfd_private(void);
MAPS_PATH static void system_v(void);
MAPS_PATH char *map_shared(size_t pages, int flags, int fd);

MAPS_PATH char *map_shared(size_t pages, int flags, int fd) {
    char *at = mmap(NULL, pages * MAPS_PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (at == MAP_FAILED) {
        claims_die("mmap failed");
    }
    return at;
}

/* In pages. */
static void
claim_both(const char *chain, const char *start, size_t pages, long private_pages, long shared) {
    claim((struct claim
    ){.kind = "mapped",
      .chain = chain,
      .start = start,
      .mapped_bytes = pages * MAPS_PAGE,
      .private_bytes = private_pages * MAPS_PAGE,
      .shared_bytes = shared * MAPS_PAGE});
}

/* In a child: what its parent mapped is mapped still, by whom is the parent's to tell. */
static void claim_inherited(const char *start, size_t pages, long private_pages, long shared) {
    claim((struct claim
    ){.kind = "inherited",
      .start = start,
      .mapped_bytes = pages * MAPS_PAGE,
      .private_bytes = private_pages * MAPS_PAGE,
      .shared_bytes = shared * MAPS_PAGE});
}

/* 16 pages: the child writes 4 of them, then the parent 2 others. Who wrote has his own; what is
 * left has one process alone. */
MAPS_PATH static void copied_on_write(void) {
    static const char chain[] = "map_pages<copied_on_write";
    char *at = map_pages(16);
    touch(at, 16 * MAPS_PAGE);
    int parent_wrote[2];
    if (pipe(parent_wrote) != 0) {
        claims_die("pipe failed");
    }
    if (claims_fork() == 0) {
        char byte;
        touch(at, 4 * MAPS_PAGE);
        (void)!read(parent_wrote[0], &byte, 1);
        claim_inherited(at, 16, 6, 10);
        claims_of_child();
    }
    touch(at + 10 * MAPS_PAGE, 2 * MAPS_PAGE);
    if (write(parent_wrote[1], "", 1) != 1) {
        claims_die("cannot tell the child");
    }
    claims_wait();
    claim_both(chain, at, 16, 6, 10);
}

/* The child touches what the parent has not: the parent has no part in it. */
MAPS_PATH static void shared_by_fork(void) {
    static const char chain[] = "map_shared<shared_by_fork";
    char *at = map_shared(30, MAP_SHARED | MAP_ANONYMOUS, -1);
    touch(at, 5 * MAPS_PAGE);
    if (claims_fork() == 0) {
        touch(at + 3 * MAPS_PAGE, 10 * MAPS_PAGE);
        claim_inherited(at, 30, 8, 2);
        claims_of_child();
    }
    claims_wait();
    claim_both(chain, at, 30, 3, 2);
}

/* What the child gives back is the parent's again. */
MAPS_PATH static void child_unmaps(void) {
    static const char chain[] = "map_pages<child_unmaps";
    char *at = map_pages(40);
    touch(at, 40 * MAPS_PAGE);
    if (claims_fork() == 0) {
        if (munmap(at + 8 * MAPS_PAGE, (size_t)20 * MAPS_PAGE) != 0) {
            claims_die("munmap failed");
        }
        claim_inherited(at, 8, 0, 8);
        claim_inherited(at + 28 * MAPS_PAGE, 12, 0, 12);
        claims_of_child();
    }
    claims_wait();
    claim_both(chain, at, 40, 20, 20);
}

MAPS_PATH static void child_maps(void) {
    char *at = map_pages(10);
    if (claims_fork() == 0) {
        char *mine = map_pages(22);
        touch(mine, 11 * MAPS_PAGE);
        claim_both("map_pages<child_maps", mine, 22, 11, 0);
        touch(at, 2 * MAPS_PAGE);
        claim_inherited(at, 10, 2, 0);
        claims_of_child();
    }
    touch(at, 3 * MAPS_PAGE);
    claims_wait();
    claim_both("map_pages<child_maps", at, 10, 3, 0);
}

static int make_memfd(size_t pages) {
    const int fd = memfd_create("oracle", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)(pages * MAPS_PAGE)) != 0) {
        claims_die("memfd_create failed");
    }
    return fd;
}

MAPS_PATH static void memfd_shared(void) {
    char *at = map_shared(50, MAP_SHARED, make_memfd(50));
    touch(at, 14 * MAPS_PAGE);
    claim_both("map_shared<memfd_shared", at, 50, 14, 0);
}

/* Written pages are its own; a file in memory, once mapped, is as well. */
MAPS_PATH static void memfd_private(void) {
    char *at = map_shared(50, MAP_PRIVATE, make_memfd(50));
    touch(at, 14 * MAPS_PAGE);
    claim_both("map_shared<memfd_private", at, 50, 14, 0);
}

/* Attached twice, the one given back; each page is told once for each place where it is mapped. */
MAPS_PATH static void system_v(void) {
    const int id = shmget(IPC_PRIVATE, (size_t)40 * MAPS_PAGE, IPC_CREAT | 0600);
    char *at = shmat(id, NULL, 0);
    char *again = shmat(id, NULL, 0);
    if (id < 0 || (intptr_t)at == -1 || (intptr_t)again == -1) {
        claims_die("shmat failed");
    }
    (void)shmctl(id, IPC_RMID, NULL);
    touch(again, 40 * MAPS_PAGE);
    if (shmdt(again) != 0) {
        claims_die("shmdt failed");
    }
    touch(at + 30 * MAPS_PAGE, 6 * MAPS_PAGE);
    claim_both("system_v", at, 40, 6, 0);
}

bool sharing_case(const char *name) {
    static const struct maps_case cases[] = {
        {"copied_on_write", copied_on_write},
        {"shared_by_fork", shared_by_fork},
        {"child_unmaps", child_unmaps},
        {"child_maps", child_maps},
        {"memfd_shared", memfd_shared},
        {"memfd_private", memfd_private},
        {"system_v", system_v},
    };
    return maps_run(cases, sizeof(cases) / sizeof(*cases), name);
}
