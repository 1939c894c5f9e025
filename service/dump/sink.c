#include "service/dump/sink.h"

#include <errno.h>
#include <unistd.h>

static enum ml_status write_all(void *context, const uint8_t *bytes, size_t count_bytes) {
    const int *fd = context;
    while (count_bytes > 0) {
        ssize_t written = write(*fd, bytes, count_bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return ML_ENV_SYSTEM;
        }
        bytes += written;
        count_bytes -= (size_t)written;
    }
    return ML_OK;
}

struct ml_dump_sink ml_dump_sink_over(const int *fd) {
    return (struct ml_dump_sink){.write = write_all, .context = (void *)(uintptr_t)fd};
}
