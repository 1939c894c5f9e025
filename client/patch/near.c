#include "client/patch/near.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "client/state/sys.h"

enum {
    PAGE_BYTES = 4096,
    ERRNO_MOST = 4095,          /* system calls answer -1 .. -4095 */
    MAP_HERE_OR_NOT = 0x100000, /* MAP_FIXED_NOREPLACE, Linux 4.17; a hint before that */
    MEMFD_EXECUTABLE = 0x10,    /* MFD_EXEC, Linux 6.3: needed where vm.memfd_noexec says so */
    TRIES = 512,
    STEP_BYTES = 1 << 20
};

/* Displacements have 31 bits and a sign; a page less, for the instructions themselves. */
#define REACH_BYTES (((uint64_t)1 << 31) - PAGE_BYTES)
/* Below it the kernel maps nothing for ordinary users (vm.mmap_min_addr). */
#define LOWEST UINT64_C(0x10000)

static size_t pages_of(size_t count_bytes) {
    return (count_bytes + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
}

static bool is_address(long answer) {
    return answer >= 0 || answer < -ERRNO_MOST;
}

/* NULL: somebody has that place, or nobody may. */
static uint8_t *reserve_at(uintptr_t wanted, size_t pages) {
    const long at = ml_sys6(
        SYS_mmap,
        (long)wanted,
        (long)pages,
        PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_HERE_OR_NOT,
        -1,
        0
    );
    if (!is_address(at)) {
        return NULL;
    }
    if ((uintptr_t)at != wanted) {
        (void)ml_sys3(SYS_munmap, at, (long)pages, 0);
        return NULL;
    }
    return (uint8_t *)at;
}

static bool is_within_reach(uintptr_t at, size_t pages, uintptr_t low, uintptr_t high) {
    return at < low ? high - at <= REACH_BYTES : at + pages - low <= REACH_BYTES;
}

/* Below the program first: above it lies the heap that brk lengthens. */
uint8_t *ml_near_reserve(uintptr_t low, uintptr_t high, size_t count_bytes) {
    const size_t pages = pages_of(count_bytes);
    low &= ~(uintptr_t)(PAGE_BYTES - 1);
    high = (high + PAGE_BYTES - 1) & ~(uintptr_t)(PAGE_BYTES - 1);
    for (uint64_t i = 1; i <= TRIES; i++) {
        const uint64_t away = i * STEP_BYTES;
        const uintptr_t below = low - away;
        if (low >= away + LOWEST && is_within_reach(below, pages, low, high)) {
            uint8_t *found = reserve_at(below, pages);
            if (found != NULL) {
                return found;
            }
        }
    }
    /* A program that begins low in memory, as one without -pie: close to its start ... */
    for (uintptr_t at = low > pages ? low - pages : 0; at >= LOWEST && low - at < STEP_BYTES;
         at -= pages) {
        uint8_t *found = reserve_at(at, pages);
        if (found != NULL) {
            return found;
        }
    }
    /* ... or as far behind its heap as it reaches. */
    for (uint64_t i = 1; i <= TRIES; i++) {
        const uintptr_t above = low + REACH_BYTES - i * STEP_BYTES;
        if (above > high && is_within_reach(above, pages, low, high)) {
            uint8_t *found = reserve_at(above & ~(uintptr_t)(PAGE_BYTES - 1), pages);
            if (found != NULL) {
                return found;
            }
        }
    }
    return NULL;
}

/* Growing a file beyond this limit raises SIGXFSZ in the program. */
static bool may_grow(size_t pages) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    (void)ml_sys4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit);
    return limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= pages;
}

static long code_memfd(void) {
    const long fd =
        ml_sys3(SYS_memfd_create, (long)"memlog-entries", MFD_CLOEXEC | MEMFD_EXECUTABLE, 0);
    return fd >= 0 ? fd : ml_sys3(SYS_memfd_create, (long)"memlog-entries", MFD_CLOEXEC, 0);
}

bool ml_near_fill(uint8_t *reserved, const uint8_t *code, size_t count_bytes) {
    const size_t pages = pages_of(count_bytes);
    const long fd = may_grow(pages) ? code_memfd() : -1;
    if (fd < 0) {
        return false;
    }
    bool done = ml_sys3(SYS_ftruncate, fd, (long)pages, 0) == 0 &&
                ml_sys4(SYS_pwrite64, fd, (long)code, (long)count_bytes, 0) == (long)count_bytes;
    if (done) {
        const long at = ml_sys6(
            SYS_mmap,
            (long)reserved,
            (long)pages,
            PROT_READ | PROT_EXEC,
            MAP_PRIVATE | MAP_FIXED,
            fd,
            0
        );
        done = at == (long)reserved;
    }
    ml_sys_close((int)fd);
    return done;
}

void ml_near_release(uint8_t *reserved, size_t count_bytes) {
    if (reserved != NULL) {
        (void)ml_sys3(SYS_munmap, (long)reserved, (long)pages_of(count_bytes), 0);
    }
}
