/* The tables that idlc emits: where each field of a message lies in its C struct and what it may
 * be. Room: mojom_like_idl. Context: any; constant data.
 *
 * One rule: a table is written by idlc alone, and read by the walkers in encode.c and decode.c
 * alone. */
#ifndef MEMLOG_MOJOM_LIKE_IDL_RUNTIME_LAYOUT_H
#define MEMLOG_MOJOM_LIKE_IDL_RUNTIME_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ipc/wire/message.h"

/* string<N>: bytes that a C string could hold, so never a 0 among them; not 0-terminated, not
 * promised to be UTF-8 (paths and command lines are neither). */
struct ml_string {
    const char *data;
    uint32_t count_bytes;
};

/* bytes<N>: anything. The walkers read a string as one of these. */
struct ml_bytes {
    const uint8_t *data;
    uint32_t count_bytes;
};
_Static_assert(
    sizeof(struct ml_bytes) == sizeof(struct ml_string) &&
        offsetof(struct ml_bytes, count_bytes) == offsetof(struct ml_string, count_bytes),
    "a string lies in memory as bytes do"
);

/* What every generated *_array and *_map struct looks like to the walkers. */
struct ml_slice {
    const void *items;
    uint32_t count;
};

/* A C string as ml_string; the text is borrowed. */
static inline struct ml_string ml_string_of(const char *text) {
    return (struct ml_string){.data = text, .count_bytes = (uint32_t)strlen(text)};
}

/* The same, cut to the limit of its field (a generated *_LIMIT). */
static inline struct ml_string ml_string_cut(const char *text, uint32_t limit_bytes) {
    const char *end =
        memchr(text, 0, limit_bytes); /* not strnlen, which the client does not have */
    return (struct ml_string
    ){.data = text, .count_bytes = end != NULL ? (uint32_t)(end - text) : limit_bytes};
}

/* A C string of it, cut to `out_bytes` with its NUL, which are not 0. */
static inline void ml_string_copy(char *out_text, size_t out_bytes, struct ml_string text) {
    const size_t room = out_bytes - 1;
    const size_t count = text.count_bytes < room ? text.count_bytes : room;
    if (count > 0) {
        memcpy(out_text, text.data, count);
    }
    out_text[count] = '\0';
}

/* How idlc declares a table: a type that no message uses has one too. */
#define ML_LAYOUT_TABLE __attribute__((unused)) static const

enum ml_layout_kind {
    ML_LAYOUT_BOOL,
    ML_LAYOUT_INT,   /* signed, size_bytes 1, 2, 4, 8 */
    ML_LAYOUT_UINT,  /* unsigned, size_bytes 1, 2, 4, 8 */
    ML_LAYOUT_FLOAT, /* size_bytes 4, 8 */
    ML_LAYOUT_ENUM,
    ML_LAYOUT_STRING,
    ML_LAYOUT_BYTES,
    ML_LAYOUT_ARRAY,
    ML_LAYOUT_MAP,
    ML_LAYOUT_STRUCT,
    ML_LAYOUT_UNION,
    ML_LAYOUT_HANDLE
};

struct ml_layout_field;

struct ml_layout {
    enum ml_layout_kind kind;
    uint32_t size_bytes;                  /* of the C type */
    uint32_t limit;                       /* string, bytes: bytes; array, map: entries */
    uint32_t entry_bytes;                 /* array: of an element; map: of an entry */
    uint32_t value_offset;                /* map: of the value in an entry; the key is in front */
    uint32_t count;                       /* struct, union: fields; enum: values */
    const struct ml_layout *key;          /* map */
    const struct ml_layout *value;        /* array: the element; map: the value */
    const struct ml_layout_field *fields; /* struct: in wire order; union: by ascending tag */
    const int32_t *values;                /* enum: ascending */
    enum ml_handle_kind handle;           /* handle */
};

#define ML_LAYOUT_NOT_NULLABLE UINT32_MAX

struct ml_layout_field {
    const char *name;
    const struct ml_layout *type;
    uint32_t offset;
    uint32_t has_offset;  /* of the bool `has_NAME`; ML_LAYOUT_NOT_NULLABLE */
    uint32_t min_version; /* struct: older messages end before it; union: its tag */
};

/* The types without parameters, shared by all generated tables. */
extern const struct ml_layout ml_layout_bool;
extern const struct ml_layout ml_layout_int8;
extern const struct ml_layout ml_layout_int16;
extern const struct ml_layout ml_layout_int32;
extern const struct ml_layout ml_layout_int64;
extern const struct ml_layout ml_layout_uint8;
extern const struct ml_layout ml_layout_uint16;
extern const struct ml_layout ml_layout_uint32;
extern const struct ml_layout ml_layout_uint64;
extern const struct ml_layout ml_layout_float;
extern const struct ml_layout ml_layout_double;

#endif
