#include "ipc/wire/writer.h"

struct ml_writer ml_writer_into(void *buffer, size_t size_bytes) {
    uint8_t *bytes = buffer;
    return (struct ml_writer
    ){.start = bytes, .pos = bytes, .end = bytes + size_bytes, .overflow = false};
}

size_t ml_writer_count(const struct ml_writer *w) {
    return (size_t)(w->pos - w->start);
}

void ml_writer_bytes(struct ml_writer *w, const void *bytes, size_t count_bytes) {
    if ((size_t)(w->end - w->pos) < count_bytes) {
        w->overflow = true;
        return;
    }
    if (count_bytes > 0) {
        memcpy(w->pos, bytes, count_bytes);
    }
    w->pos += count_bytes;
}

void ml_writer_u8(struct ml_writer *w, uint8_t value) {
    ml_writer_bytes(w, &value, sizeof(value));
}

void ml_writer_u32(struct ml_writer *w, uint32_t value) {
    ml_writer_bytes(w, &value, sizeof(value));
}

void ml_writer_u64(struct ml_writer *w, uint64_t value) {
    ml_writer_bytes(w, &value, sizeof(value));
}

void ml_writer_varint(struct ml_writer *w, uint64_t value) {
    uint8_t bytes[ML_VARINT_MAX_BYTES];
    const uint8_t *end = ml_put_varint(bytes, value);
    ml_writer_bytes(w, bytes, (size_t)(end - bytes));
}

void ml_writer_zigzag(struct ml_writer *w, int64_t value) {
    ml_writer_varint(w, ml_zigzag(value));
}

void ml_writer_blob(struct ml_writer *w, const void *bytes, size_t count_bytes) {
    const uint8_t *before = w->pos;
    ml_writer_varint(w, count_bytes);
    ml_writer_bytes(w, bytes, count_bytes);
    if (w->overflow) {
        w->pos = w->start + (before - w->start);
    }
}
