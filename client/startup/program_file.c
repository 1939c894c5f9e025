#include "client/startup/program_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "client/state/sys.h"

enum { ERRNO_MOST = 4095 /* system calls answer -1 .. -4095 */ };

const uint8_t *ml_program_file_map(const char *path, size_t *out_bytes) {
    struct stat file = {.st_size = 0};
    path = path != NULL ? path : "/proc/self/exe";
    const long fd = ml_sys3(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return NULL;
    }
    long at = -1;
    if (ml_sys3(SYS_fstat, fd, (long)&file, 0) == 0 && file.st_size > 0) {
        /* Shared: uprobes stand in private mappings of their file, and are not in the file. */
        at = ml_sys6(SYS_mmap, 0, file.st_size, PROT_READ, MAP_SHARED, fd, 0);
    }
    ml_sys_close((int)fd);
    if (at < 0 && at >= -ERRNO_MOST) {
        return NULL;
    }
    *out_bytes = (size_t)file.st_size;
    return (const uint8_t *)at;
}

void ml_program_file_unmap(const uint8_t *file, size_t count_bytes) {
    if (file != NULL) {
        (void)ml_sys3(SYS_munmap, (long)file, (long)count_bytes, 0);
    }
}

int ml_program_code_open(void) {
    const long fd = ml_sys3(SYS_openat, AT_FDCWD, (long)"/proc/self/mem", O_RDWR | O_CLOEXEC);
    return fd < 0 ? -1 : (int)fd;
}

bool ml_program_code_write(int fd, uintptr_t at, const uint8_t *bytes, size_t count_bytes) {
    return ml_sys4(SYS_pwrite64, fd, (long)bytes, (long)count_bytes, (long)at) == (long)count_bytes;
}
