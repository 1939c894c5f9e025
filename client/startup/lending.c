#include "client/startup/lending.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#include "client/state/decimal.h"
#include "client/state/sys.h"

/* The connection is open for what libc starts by itself; -1: it is not. */
static _Atomic int with_shells = -1;

static void set_flags(int fd, int flags) {
    if (ml_process_is_file(fd, &ml_process.socket)) {
        (void)ml_sys3(SYS_fcntl, fd, F_SETFD, flags);
    }
}

int ml_lending_find(const char *socket_path) {
    /* What the new program itself finds out, it also finds out from here. */
    const long seen = ml_sys3(SYS_access, (long)socket_path, F_OK, 0);
    if (seen != -ENOENT && seen != -ENOTDIR && seen != -EACCES) {
        return ML_LENDING_NOT_NEEDED;
    }
    const int fd = atomic_load(&ml_process.socket_fd);
    return (ml_process.filters & ML_FILTERS_NO_LENDING) == 0 &&
                   ml_process_is_file(fd, &ml_process.socket)
               ? fd
               : ML_LENDING_IMPOSSIBLE;
}

void ml_lending_begin(int fd) {
    const int of_shells = atomic_load_explicit(&with_shells, memory_order_relaxed);
    if (fd >= 0) {
        set_flags(fd, 0);
    } else if (of_shells >= 0) {
        set_flags(of_shells, FD_CLOEXEC);
    }
}

void ml_lending_end(int fd) {
    if (fd >= 0) {
        set_flags(fd, FD_CLOEXEC);
    }
}

void ml_lending_to_shells(int fd, bool are_started) {
    set_flags(fd, are_started ? 0 : FD_CLOEXEC);
    atomic_store(&with_shells, are_started ? fd : -1);
}

static char *put_number(char *at, uint64_t number, char end) {
    at = ml_decimal_put(at, number);
    *at++ = end;
    return at;
}

size_t ml_lending_word(int fd, char out_word[ML_LENDING_WORD_BYTES]) {
    char *at = out_word;
    if (fd >= 0) {
        at = put_number(at, (uint64_t)fd, '.');
        at = put_number(at, ml_process.socket.device, '.');
        at = put_number(at, ml_process.socket.inode, ':');
    }
    *at = 0;
    return (size_t)(at - out_word);
}

/* The number at *text, which ends with `end`; *text is then behind that. */
static bool get_number(const char **text, char end, uint64_t *out_number) {
    const char *at = *text;
    uint64_t number = 0;
    while (*at >= '0' && *at <= '9') {
        const uint64_t digit = (uint64_t)(*at - '0');
        if (number > (UINT64_MAX - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
        at++;
    }
    if (at == *text || *at != end) {
        return false;
    }
    *text = at + 1;
    *out_number = number;
    return true;
}

const char *ml_lending_read(const char *value, int *out_fd) {
    const char *at = value;
    uint64_t fd = 0;
    struct ml_file file = {.device = 0};
    *out_fd = -1;
    if (!get_number(&at, '.', &fd) || !get_number(&at, '.', &file.device) ||
        !get_number(&at, ':', &file.inode)) {
        return value;
    }
    /* A program in between that ran without memlog may have closed it, and used the number again.
     */
    if (fd <= INT32_MAX && ml_process_is_file((int)fd, &file)) {
        *out_fd = (int)fd;
    }
    return at;
}
