#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/generated/code_file.h"

/* The format is Linux's: tools/perf/Documentation/jitdump-specification.txt. Numbers are in the
 * order of the machine that wrote them, which is ours or none. */
enum {
    JIT_MAGIC = 0x4a695444,
    JIT_FLAG_TICKS = 1,
    JIT_CODE_LOAD = 0,
    JIT_CODE_MOVE = 1,
    HEADER_BYTES = 40,
    RECORD_BYTES = 16, /* id, length, time */
    LOAD_BYTES = 40,   /* behind that: pid, thread, vma, address, size, index; then the name */
    MOVE_BYTES = 48,   /* pid, thread, vma, old address, new address, size, index */
    RECORDS_BETWEEN_PAUSES = 64 /* some 50 us */
};

static uint32_t number32(const char *at) {
    uint32_t number = 0;
    memcpy(&number, at, sizeof(number));
    return number;
}

static uint64_t number64(const char *at) {
    uint64_t number = 0;
    memcpy(&number, at, sizeof(number));
    return number;
}

/* As much as there is, up to count_bytes. */
static size_t read_at(int fd, uint64_t at, char *out_bytes, size_t count_bytes) {
    size_t count = 0;
    while (count < count_bytes) {
        const ssize_t got = pread(fd, out_bytes + count, count_bytes - count, (off_t)(at + count));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        count += (size_t)got;
    }
    return count;
}

/* Where the records begin; 0: it is no jitdump. */
static uint64_t read_header(int fd, enum ml_jit_clock *out_clock) {
    enum { VERSION_AT = 4, LENGTH_AT = 8, FLAGS_AT = 32 };
    char header[HEADER_BYTES];
    if (read_at(fd, 0, header, sizeof(header)) != sizeof(header) || number32(header) != JIT_MAGIC ||
        number32(header + VERSION_AT) != 1 || number32(header + LENGTH_AT) < HEADER_BYTES) {
        return 0;
    }
    *out_clock =
        (number64(header + FLAGS_AT) & JIT_FLAG_TICKS) != 0 ? ML_JIT_TICKS : ML_JIT_MONOTONIC;
    return number32(header + LENGTH_AT);
}

enum ml_status ml_jit_dump_clock(int fd, enum ml_jit_clock *out_clock) {
    return read_header(fd, out_clock) != 0 ? ML_OK : ML_PEER_UNKNOWN;
}

/* One record; `bytes` are its first ones, at most up to the end of the longest name. */
static enum ml_status
take_record(struct ml_code_index *index, const char *bytes, size_t count, uint64_t at) {
    enum { TIME_AT = 8 };
    const uint64_t time = number64(bytes + TIME_AT);
    const char *body = bytes + RECORD_BYTES;
    struct ml_code_line line = {.name_at = 0};
    uint64_t start = 0;
    uint64_t size = 0;
    if (number32(bytes) == JIT_CODE_LOAD && count >= RECORD_BYTES + LOAD_BYTES) {
        enum { ADDRESS_AT = 16, SIZE_AT = 24 };
        const size_t room = count - RECORD_BYTES - LOAD_BYTES;
        start = number64(body + ADDRESS_AT);
        size = number64(body + SIZE_AT);
        line.name_at = at + RECORD_BYTES + LOAD_BYTES;
        line.name_bytes = (uint32_t)strnlen(body + LOAD_BYTES, room);
    } else if (number32(bytes) == JIT_CODE_MOVE && count >= RECORD_BYTES + MOVE_BYTES) {
        enum { ADDRESS_AT = 24, SIZE_AT = 32 };
        start = number64(body + ADDRESS_AT);
        size = number64(body + SIZE_AT);
    }
    if (size == 0 || size > UINT64_MAX - start) {
        return ML_OK;
    }
    return ml_code_index_add(index, start, start + size, time, &line);
}

enum ml_status
ml_jit_dump_read(int fd, struct ml_code_index *index, const struct ml_code_pause *pause) {
    char bytes[RECORD_BYTES + LOAD_BYTES + ML_CODE_NAME_MAX_BYTES];
    enum ml_jit_clock clock = ML_JIT_MONOTONIC;
    struct stat about;
    uint64_t at = read_header(fd, &clock);
    const uint64_t end =
        at != 0 && fstat(fd, &about) == 0 && about.st_size > 0 ? (uint64_t)about.st_size : 0;
    enum ml_status status = ML_OK;
    for (uint32_t records = 1; status == ML_OK && at < end; records++) {
        enum { LENGTH_AT = 4 };
        const size_t count = read_at(fd, at, bytes, sizeof(bytes));
        const uint64_t length = count >= RECORD_BYTES ? number32(bytes + LENGTH_AT) : 0;
        if (length < RECORD_BYTES || length > end - at) {
            break;
        }
        status = records > ML_CODE_RECORDS_MAX
                     ? ML_PEER_LIMIT
                     : take_record(index, bytes, count < length ? count : (size_t)length, at);
        at += length;
        if (pause != NULL && records % RECORDS_BETWEEN_PAUSES == 0) {
            pause->take(pause->context);
        }
    }
    ml_code_index_settle(index);
    return status;
}
