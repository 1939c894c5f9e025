#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/generated/code_file.h"

/* What is read of the file: bytes [at, at + count) of it, from a line's beginning on. */
struct window {
    char bytes[ML_CODE_BLOCK_BYTES];
    size_t count;
    uint64_t at;
    bool
        is_inside; /* a line longer than the window: what it begins with is the rest of that line */
};

/* A number in hex that a blank follows. Returns the place behind the blank; NULL: it is none. */
static const char *take_hex(const char *at, const char *end, uint64_t *out_number) {
    enum { DIGITS_MAX = 16 };
    uint64_t number = 0;
    if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) {
        at += 2;
    }
    const char *first = at;
    for (; at < end; at++) {
        unsigned digit = 0;
        if (*at >= '0' && *at <= '9') {
            digit = (unsigned)(*at - '0');
        } else if ((*at | ' ') >= 'a' && (*at | ' ') <= 'f') {
            digit = (unsigned)((*at | ' ') - 'a') + 10;
        } else {
            break;
        }
        number = number << 4 | digit;
    }
    if (at == first || at - first > DIGITS_MAX || at == end || *at != ' ') {
        return NULL;
    }
    *out_number = number;
    return at + 1;
}

/* One line without its end. `at` is its place in the file. */
static enum ml_status
take_line(struct ml_code_index *index, const char *line, const char *end, uint64_t at) {
    uint64_t start = 0;
    uint64_t size = 0;
    const char *name = take_hex(line, end, &start);
    name = name != NULL ? take_hex(name, end, &size) : NULL;
    if (name == NULL || size == 0 || size > UINT64_MAX - start) {
        return ML_OK;
    }
    if (end > name && end[-1] == '\r') {
        end--;
    }
    const size_t bytes = (size_t)(end - name);
    const struct ml_code_line told = {
        .name_at = at + (uint64_t)(name - line),
        .name_bytes = (uint32_t)(bytes < ML_CODE_NAME_MAX_BYTES ? bytes : ML_CODE_NAME_MAX_BYTES)};
    return ml_code_index_add(index, start, start + size, 0, &told);
}

/* All lines that end in the window; what is left begins the next one. */
static enum ml_status take_lines(struct ml_code_index *index, struct window *window) {
    const char *line = window->bytes;
    const char *const end = window->bytes + window->count;
    enum ml_status status = ML_OK;
    while (status == ML_OK && line < end) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        if (stop == NULL && (line > window->bytes || window->count < sizeof(window->bytes))) {
            break;
        }
        if (!window->is_inside) {
            status = take_line(
                index,
                line,
                stop != NULL ? stop : end,
                window->at + (uint64_t)(line - window->bytes)
            );
        }
        window->is_inside = stop == NULL;
        line = stop != NULL ? stop + 1 : end;
    }
    const size_t used = (size_t)(line - window->bytes);
    memmove(window->bytes, line, window->count - used);
    window->count -= used;
    window->at += used;
    return status;
}

enum ml_status
ml_perf_map_read(int fd, struct ml_code_index *index, const struct ml_code_pause *pause) {
    struct window window = {.count = 0};
    struct stat about;
    enum ml_status status = ML_OK;
    if (fstat(fd, &about) != 0 || about.st_size < 0) {
        return ML_OK;
    }
    const uint64_t end = (uint64_t)about.st_size;
    if (end > ML_PERF_MAP_MAX_BYTES) {
        return ML_PEER_LIMIT;
    }
    while (status == ML_OK && window.at + window.count < end) {
        const uint64_t at = window.at + window.count;
        const size_t room = sizeof(window.bytes) - window.count;
        const size_t wanted = end - at < room ? (size_t)(end - at) : room;
        const ssize_t got = pread(fd, window.bytes + window.count, wanted, (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        window.count += (size_t)got;
        status = take_lines(index, &window);
        if (pause != NULL) {
            pause->take(pause->context);
        }
    }
    ml_code_index_settle(index);
    return status;
}

uint32_t
ml_code_name_read(int fd, const struct ml_code_line *line, char out_name[ML_CODE_NAME_MAX_BYTES]) {
    uint32_t count = 0;
    while (count < line->name_bytes) {
        const ssize_t got =
            pread(fd, out_name + count, line->name_bytes - count, (off_t)(line->name_at + count));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return 0;
        }
        count += (uint32_t)got;
    }
    const char *stop = memchr(out_name, 0, count);
    return stop != NULL ? (uint32_t)(stop - out_name) : count;
}
