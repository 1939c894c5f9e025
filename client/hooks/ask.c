/* memlog_dump: the program's own requests to the host. Room: client (private). Context: any thread,
 * a signal handler too; no lock, no allocation, no waiting. */
#include <stdatomic.h>
#include <string.h>

#include "client/hooks/ask_limit.h"
#include "client/memlog.h"
#include "client/recording/lifecycle.h"
#include "client/startup/handshake.h"
#include "client/state/sys.h"
#include "client/state/visible.h"

/* The prefix of a text that fits a message, cut between two characters. */
static struct ml_bytes cut(const char *text, size_t most) {
    if (text == NULL) {
        return (struct ml_bytes){NULL, 0};
    }
    const char *end = memchr(text, 0, most + 1);
    size_t count = end != NULL ? (size_t)(end - text) : most;
    while (end == NULL && count > 0 && ((unsigned char)text[count] & 0xC0) == 0x80) {
        count--;
    }
    return (struct ml_bytes){.data = (const uint8_t *)text, .count_bytes = (uint32_t)count};
}

ML_VISIBLE int memlog_dump(const char *role, const char *reason) {
    static struct ml_ask_limit limit;
    if (!ml_process.connected || (ml_process.filters & ML_FILTERS_NO_HOST) != 0) {
        return -1;
    }
    ml_lifecycle_be_somebody(); /* the host does not know a child that has not allocated yet */
    if ((ml_process.filters & ML_FILTERS_NO_HOST) != 0 ||
        !ml_ask_may(&limit, ml_sys_monotonic_ns())) {
        return -1;
    }
    const int fd = atomic_load(&ml_process.socket_fd);
    const uint32_t passed_over = atomic_exchange(&limit.passed_over, 0);
    if (!ml_process_is_file(fd, &ml_process.socket) ||
        !ml_handshake_ask_dump(
            fd,
            cut(role, MEMLOG_CLIENT_MAX_ROLE_BYTES),
            cut(reason, MEMLOG_CLIENT_MAX_REASON_BYTES),
            passed_over
        )) {
        (void)atomic_fetch_add(&limit.passed_over, passed_over + 1);
        return -1;
    }
    return 0;
}
