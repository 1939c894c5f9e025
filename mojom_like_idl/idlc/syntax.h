/* The syntax tree of a .mojom file. Room: mojom_like_idl (idlc).
 *
 * One rule: the parser fills in what the file says, the checker what it derives (marked "checker").
 * The emitter only reads. All memory is the source's pool's. */
#ifndef MEMLOG_MOJOM_LIKE_IDL_IDLC_SYNTAX_H
#define MEMLOG_MOJOM_LIKE_IDL_IDLC_SYNTAX_H

#include <stdbool.h>
#include <stdint.h>

#include "mojom_like_idl/idlc/source.h"

enum type_kind {
    TYPE_BOOL,
    TYPE_INT,   /* bits: 8, 16, 32, 64 */
    TYPE_UINT,  /* bits: 8, 16, 32, 64 */
    TYPE_FLOAT, /* bits: 32, 64 */
    TYPE_STRING,
    TYPE_BYTES,
    TYPE_ARRAY,
    TYPE_MAP,
    TYPE_HANDLE,
    TYPE_NAMED /* an enum, struct or union declared above */
};

/* In the order of enum ml_handle_kind, see ipc/wire/message.h. */
enum handle_kind { HANDLE_PIPE, HANDLE_MEMFD, HANDLE_MEMFD_UNSEALED, HANDLE_FILE, HANDLE_SOCKET };

struct declaration;

struct type {
    enum type_kind kind;
    struct place place;
    int bits;
    enum handle_kind handle;
    bool is_nullable;
    const char *name;     /* TYPE_NAMED */
    struct type *key;     /* map */
    struct type *element; /* array; map: the value */
    struct place limit_place;
    const char *limit_name; /* of a const; NULL: `limit` was written as a number */
    uint64_t limit;         /* string, bytes, array, map; checker, if it has a name */
    const struct declaration *declaration; /* TYPE_NAMED; checker */
    uint64_t body_bytes_max;               /* on the wire; checker */
    uint32_t handles_max;                  /* checker */
};

/* Comments of one thing: the lines above it and the one behind it. NULL: none. */
struct remark {
    const char *above; /* lines parted by '\n' */
    const char *behind;
};

/* A field of a struct, a parameter, or a member of a union. */
struct field {
    struct field *next;
    struct place place;
    struct remark remark;
    const char *name;
    struct type *type;
    uint64_t number; /* union: the tag */
    uint64_t min_version;
    struct place min_version_place; /* line 0: not given */
    struct place unsealed_place;    /* likewise */
};

struct enum_value {
    struct enum_value *next;
    struct place place;
    struct remark remark;
    const char *name;
    int64_t number;
};

/* The fields of a struct or union, or the parameters of a message. */
struct record {
    struct field *fields;
    int count;
    uint64_t body_bytes_max; /* checker */
    uint32_t handles_max;    /* checker */
};

struct method {
    struct method *next;
    struct place place;
    struct place number_place;
    struct remark remark;
    const char *name;
    uint64_t number;
    struct record request;
    bool has_reply;
    struct record reply;
};

enum declaration_kind {
    DECLARATION_CONST,
    DECLARATION_ENUM,
    DECLARATION_STRUCT,
    DECLARATION_UNION,
    DECLARATION_INTERFACE
};

struct declaration {
    struct declaration *next;
    enum declaration_kind kind;
    struct place place; /* of its name */
    struct remark remark;
    const char *name;
    /* const */
    struct type *const_type;
    struct place const_place;
    bool const_is_negative;
    uint64_t const_number; /* bool: 0, 1 */
    const char *const_text;
    /* the others */
    struct enum_value *values;
    struct record record;
    struct method *methods;
};

struct contract {
    const char *module; /* "memlog_client" for memlog.client */
    struct remark remark;
    struct declaration *declarations;
};

#endif
