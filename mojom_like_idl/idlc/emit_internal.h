/* What both outputs share. Room: mojom_like_idl (idlc), private. */
#ifndef MEMLOG_MOJOM_LIKE_IDL_IDLC_EMIT_INTERNAL_H
#define MEMLOG_MOJOM_LIKE_IDL_IDLC_EMIT_INTERNAL_H

#include "mojom_like_idl/idlc/emit.h"

struct claimed_name {
    struct claimed_name *next;
    const char *name;
    int line;
};

struct emitter {
    struct source *source;
    struct pool *pool;
    const struct contract *contract;
    FILE *out;
    const char *prefix; /* "memlog_client" */
    struct claimed_name *claimed;
};

/* One message of a method. */
struct message {
    const struct method *method;
    const struct record *record;
    const char *name; /* "memlog_client_hello_request" */
    bool is_reply;
};

struct emitter emitter_start(struct source *source, const struct contract *contract, FILE *out);

void emit(struct emitter *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "Generated from ..., do not edit" and the contract's own comment. */
void emit_banner(struct emitter *e);

/* A comment of the .mojom as a C comment; nothing for NULL. */
void emit_comment(struct emitter *e, const char *indent, const char *text);

/* Note that C gets this name. False: it has it already (arrays and maps share theirs). */
bool emit_claim(struct emitter *e, const char *name, int line);

/* The same for a name that must be new: an error if it is not. */
void emit_claim_new(struct emitter *e, const char *name, struct place place);

/* "memlog_client_" and the name in snake case. */
const char *emit_name(struct emitter *e, const char *name);

/* A field's C type: "uint32_t", "struct ml_string", "enum memlog_client_verdict". */
const char *emit_c_type(struct emitter *e, const struct type *type);

/* An array's "struct ..._array", a map's "struct ..._map", and a map's "struct ..._entry". */
const char *emit_slice_type(struct emitter *e, const struct type *type);
const char *emit_entry_type(struct emitter *e, const struct type *type);

struct message emit_request_of(struct emitter *e, const struct method *method);
struct message emit_reply_of(struct emitter *e, const struct method *method);

#endif
