/* Address space as the program maps it. Room: client. Context: everywhere, at any time, before the
 * constructor too.
 *
 * One rule: the caller gets the kernel's answer, errno included. The real call runs without a
 * guard, so that whoever else stands in front of it may do as it likes.
 *
 * An address may be mapped again by another thread as soon as it is unmapped. So an unmapping is
 * recorded before the call, and taken back where the call fails. */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/mman.h>

#include "client/recording/mapping.h"
#include "client/startup/libc.h"
#include "client/state/sys.h"
#include "client/state/visible.h"

/* By names of our own: libc's headers may declare another function under these. */
#define HOOK(name) __asm__(name) ML_VISIBLE __attribute__((noinline))
void *hooked_mmap(void *at, size_t length, int protection, int flags, int fd, off_t from)
    HOOK("mmap");
/* Offsets have 64 bits in both. */
void *hooked_mmap64(void *at, size_t length, int protection, int flags, int fd, off_t from)
    HOOK("mmap64") __attribute__((alias("mmap")));
int hooked_munmap(void *at, size_t length) HOOK("munmap");
void *hooked_mremap(void *at, size_t old_length, size_t length, int flags, ...) HOOK("mremap");
void *hooked_shmat(int id, const void *at, int flags) HOOK("shmat");
int hooked_shmdt(const void *at) HOOK("shmdt");

static void *const failed = (void *)-1;

enum { ERRNO_MAX = 4095 };

/* The kernel itself: where no libc is found. */
static long answer(long result) {
    if (result < 0 && result >= -ERRNO_MAX) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

void *hooked_mmap(void *at, size_t length, int protection, int flags, int fd, off_t from) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    ML_LIBC_READY(mmap);
    void *const result =
        ml_libc.mmap != NULL
            ? ml_libc.mmap(at, length, protection, flags, fd, from)
            : (void *)answer(ml_sys6(SYS_mmap, (long)at, (long)length, protection, flags, fd, from)
              );
    if (result != failed) {
        ml_mapping_note(&entry, ML_MAPPING_MAP, result, length);
    }
    return result;
}

int hooked_munmap(void *at, size_t length) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    ML_LIBC_READY(mmap);
    if (length > 0) {
        ml_mapping_note(&entry, ML_MAPPING_UNMAP, at, length);
    }
    const int result = ml_libc.munmap != NULL
                           ? ml_libc.munmap(at, length)
                           : (int)answer(ml_sys3(SYS_munmap, (long)at, (long)length, 0));
    if (result != 0 && length > 0) {
        ml_mapping_note(&entry, ML_MAPPING_MOVED, at, length);
    }
    return result;
}

static void *call_mremap(void *at, size_t old_length, size_t length, int flags, void *to) {
    return ml_libc.mremap != NULL
               ? ml_libc.mremap(at, old_length, length, flags, to)
               : (void *)answer(ml_sys6(
                     SYS_mremap, (long)at, (long)old_length, (long)length, flags, (long)to, 0
                 ));
}

void *hooked_mremap(void *at, size_t old_length, size_t length, int flags, ...) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    va_list rest;
    va_start(rest, flags);
    void *const to = va_arg(rest, void *);
    va_end(rest);
    ML_LIBC_READY(mmap);
    /* An old length of 0 makes a second mapping of the same pages. */
    const bool leaves = old_length > 0;
    if (leaves) {
        ml_mapping_note(&entry, ML_MAPPING_UNMAP, at, old_length);
    }
    void *const result = call_mremap(at, old_length, length, flags, to);
    if (leaves && (result == failed || (flags & MREMAP_DONTUNMAP) != 0)) {
        ml_mapping_note(&entry, ML_MAPPING_MOVED, at, old_length);
    }
    if (result != failed) {
        ml_mapping_note(&entry, leaves ? ML_MAPPING_MOVED : ML_MAPPING_MAP, result, length);
    }
    return result;
}

void *hooked_shmat(int id, const void *at, int flags) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    ML_LIBC_READY(mmap);
    void *const result = ml_libc.shmat != NULL
                             ? ml_libc.shmat(id, at, flags)
                             : (void *)answer(ml_sys3(SYS_shmat, id, (long)at, flags));
    if (result != failed) {
        ml_mapping_note(&entry, ML_MAPPING_MAP, result, 0);
    }
    return result;
}

int hooked_shmdt(const void *at) {
    const struct ml_unwind_entry entry = ml_unwind_entry_here();
    ML_LIBC_READY(mmap);
    ml_mapping_note(&entry, ML_MAPPING_UNMAP, at, 0);
    const int result =
        ml_libc.shmdt != NULL ? ml_libc.shmdt(at) : (int)answer(ml_sys1(SYS_shmdt, (long)at));
    if (result != 0) {
        ml_mapping_note(&entry, ML_MAPPING_MOVED, at, 0);
    }
    return result;
}
