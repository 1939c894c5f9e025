#include "base/descriptors/close_above.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LISTING_BYTES = 4096 };

/* By the list that the kernel gives of them. Closing while reading may make it pass over some, so
 * it is read until there is none. False: there is no list. */
static bool close_listed(int last) {
    union {
        char bytes[LISTING_BYTES];
        struct dirent64 first;
    } listing;
    bool is_any = true;
    while (is_any) {
        const int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        long count = 0;
        if (folder < 0) {
            return false;
        }
        is_any = false;
        while ((count = syscall(SYS_getdents64, folder, &listing, sizeof(listing))) > 0) {
            for (long at = 0; at < count;) {
                const struct dirent64 *entry =
                    (const struct dirent64 *)(const void *)(listing.bytes + at);
                const int fd = (int)strtol(entry->d_name, NULL, 10);
                at += entry->d_reclen;
                if (fd > last && fd != folder) {
                    is_any = close(fd) == 0 || is_any;
                }
            }
        }
        (void)close(folder);
    }
    return true;
}

void ml_close_above(int last) {
    if (syscall(SYS_close_range, (unsigned)last + 1, ~0U, 0U) == 0 || close_listed(last)) {
        return;
    }
    const long limit = sysconf(_SC_OPEN_MAX);
    for (int fd = last + 1; fd < limit; fd++) {
        (void)close(fd);
    }
}
