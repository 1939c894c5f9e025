/* Encodes numbers into a caller's buffer. Room: ipc (:wire). Context: any, the malloc path
 * included: no allocation, no lock, no errno, no syscall.
 *
 * One rule: a writer never writes behind its end. What does not fit sets `overflow` and writes
 * nothing; the caller looks at it once, at the end. */
#ifndef MEMLOG_IPC_WIRE_WRITER_H
#define MEMLOG_IPC_WIRE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Longest varint: 64 bits in groups of 7. */
enum { ML_VARINT_MAX_BYTES = 10 };

struct ml_writer {
    uint8_t *start;
    uint8_t *pos;
    uint8_t *end;
    bool overflow;
};

/* A writer into [buffer, buffer + size_bytes); the buffer is borrowed. */
struct ml_writer ml_writer_into(void *buffer, size_t size_bytes);

/* Bytes written so far. */
size_t ml_writer_count(const struct ml_writer *w);

void ml_writer_u8(struct ml_writer *w, uint8_t value);
void ml_writer_u32(struct ml_writer *w, uint32_t value);
void ml_writer_u64(struct ml_writer *w, uint64_t value);
void ml_writer_varint(struct ml_writer *w, uint64_t value);
void ml_writer_zigzag(struct ml_writer *w, int64_t value);
void ml_writer_bytes(struct ml_writer *w, const void *bytes, size_t count_bytes);

/* A varint length, then the bytes. */
void ml_writer_blob(struct ml_writer *w, const void *bytes, size_t count_bytes);

/* Zigzag: small magnitudes of either sign become small numbers. */
static inline uint64_t ml_zigzag(int64_t value) {
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

/* Append a varint of any length, byte by byte. */
static inline uint8_t *ml_put_varint_bytes(uint8_t *pos, uint64_t value) {
    while (value >= 0x80) {
        *pos++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *pos++ = (uint8_t)value;
    return pos;
}

/* The varint of `value` at `pos`, unchecked: the caller has ML_VARINT_MAX_BYTES of room, all of
 * which may be written. Returns the next position.
 *
 * Up to 28 bits, as nearly all are, it has no loop: a processor cannot predict the next length. */
static inline uint8_t *ml_put_varint(uint8_t *pos, uint64_t value) {
    if (__builtin_expect(value < 1u << 28, 1)) {
        /* A group of 7 bits a byte: 14 of them apart first, then 7. x + 3 * y is x with its part y
         * two bits further up. */
        uint32_t groups = (uint32_t)value;
        groups += 3 * (groups & 0xfffc000);
        groups += groups & 0x3f803f80;
        /* Eight times the bytes behind the first; all but the last are marked. */
        const uint32_t more = (31u - (uint32_t)__builtin_clz(groups | 1)) & 24;
        groups |= UINT32_C(0x808080) >> (24 - more);
        memcpy(pos, &groups, sizeof(groups)); /* little-endian, as all that memlog runs on */
        return pos + 1 + more / 8;
    }
    return ml_put_varint_bytes(pos, value);
}

/* The same for numbers of nearly always one byte. */
static inline uint8_t *ml_put_varint_byte(uint8_t *pos, uint64_t value) {
    if (__builtin_expect(value < 0x80, 1)) {
        *pos = (uint8_t)value;
        return pos + 1;
    }
    return ml_put_varint_bytes(pos, value);
}

/* The same for numbers of mostly one or two bytes, in half the instructions. */
static inline uint8_t *ml_put_varint_small(uint8_t *pos, uint64_t value) {
    if (__builtin_expect(value < 1u << 14, 1)) {
        const uint32_t two = value >= 0x80;
        const uint16_t groups = (uint16_t)((value + (value & 0x3f80)) | two << 7);
        memcpy(pos, &groups, sizeof(groups));
        return pos + 1 + two;
    }
    return ml_put_varint_bytes(pos, value);
}

#endif
