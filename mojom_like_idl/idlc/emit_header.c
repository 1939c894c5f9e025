#include "mojom_like_idl/idlc/emit.h"

#include <inttypes.h>
#include <string.h>

#include "ipc/wire/message.h"
#include "mojom_like_idl/idlc/emit_internal.h"
#include "mojom_like_idl/idlc/names.h"

static void emit_const(struct emitter *e, const struct declaration *d) {
    const struct type *type = d->const_type;
    const char *sign = d->const_is_negative ? "-" : "";
    const char *name = names_upper(e->pool, emit_name(e, d->name));
    emit_claim_new(e, name, d->place);
    emit_comment(e, "", d->remark.above);
    emit_comment(e, "", d->remark.behind);
    if (type->kind == TYPE_STRING) {
        emit(e, "#define %s \"%s\"\n\n", name, d->const_text);
    } else if (type->kind == TYPE_BOOL) {
        emit(e, "#define %s %s\n\n", name, d->const_text);
    } else if (type->kind == TYPE_INT && d->const_number > INT64_MAX) {
        emit(e, "#define %s INT64_MIN\n\n", name); /* C has no literal for it */
    } else {
        const char *macro = type->kind == TYPE_INT ? "INT" : "UINT";
        emit(
            e,
            "#define %s (%s%s%d_C(%" PRIu64 "))\n\n",
            name,
            sign,
            macro,
            type->bits,
            d->const_number
        );
    }
}

/* The values' words for tables of names, where a table by number has no holes. */
static void emit_words(struct emitter *e, const struct declaration *d, const char *upper) {
    const char *macro = pool_print(e->pool, "%s_WORDS", upper);
    int64_t next = 0;

    for (const struct enum_value *v = d->values; v != NULL; v = v->next) {
        if (v->number != next++) {
            emit(e, "\n");
            return;
        }
    }
    emit_claim_new(e, macro, d->place);
    emit(e, "/* In the order of their numbers. */\n#define %s \\\n    ", macro);
    for (const struct enum_value *v = d->values; v != NULL; v = v->next) {
        emit(e, "\"%s\"%s", names_snake(e->pool, v->name), v->next == NULL ? "\n\n" : ", ");
    }
}

static void emit_enum(struct emitter *e, const struct declaration *d) {
    const char *name = emit_name(e, d->name);
    const char *upper = names_upper(e->pool, name);
    emit_claim_new(e, name, d->place);
    emit_comment(e, "", d->remark.above);
    emit(e, "enum %s {\n", name);
    for (const struct enum_value *v = d->values; v != NULL; v = v->next) {
        const char *value = pool_print(
            e->pool, "%s_%s", upper, names_upper(e->pool, names_snake(e->pool, v->name))
        );
        emit_claim_new(e, value, v->place);
        emit_comment(e, "    ", v->remark.above);
        emit_comment(e, "    ", v->remark.behind);
        emit(e, "    %s = %" PRId64 "%s\n", value, v->number, v->next == NULL ? "" : ",");
    }
    emit(e, "};\n");
    emit_words(e, d, upper);
}

/* The structs behind arrays and maps, innermost first, each once. */
static void emit_slices(struct emitter *e, const struct type *type) {
    if (type->kind != TYPE_ARRAY && type->kind != TYPE_MAP) {
        return;
    }
    emit_slices(e, type->element);
    const char *slice = emit_slice_type(e, type);
    const char *items = emit_c_type(e, type->element);
    if (!emit_claim(e, slice + strlen("struct "), type->place.line)) {
        return;
    }
    if (type->kind == TYPE_MAP) {
        items = emit_entry_type(e, type);
        emit(e, "%s {\n", items);
        emit(e, "    %s key;\n", emit_c_type(e, type->key));
        emit(e, "    %s value;\n};\n\n", emit_c_type(e, type->element));
        emit(e, "/* Keys strictly ascending; strings by byte, a prefix first. */\n");
    }
    emit(e, "%s {\n    const %s *items;\n    uint32_t count;\n};\n\n", slice, items);
}

static void emit_limits(struct emitter *e, const char *name, const struct type *type) {
    if (type->limit != 0) {
        emit(e, "#define %s_LIMIT UINT32_C(%" PRIu64 ")\n", name, type->limit);
    }
    if (type->kind == TYPE_ARRAY) {
        emit_limits(e, pool_print(e->pool, "%s_ELEMENT", name), type->element);
    } else if (type->kind == TYPE_MAP) {
        emit_limits(e, pool_print(e->pool, "%s_KEY", name), type->key);
        emit_limits(e, pool_print(e->pool, "%s_VALUE", name), type->element);
    }
}

/* Arena bytes that decoding a value may take at most, as an expression; NULL: none. */
static const char *arena_bytes(struct emitter *e, const struct type *type) {
    if (type->kind == TYPE_NAMED && type->declaration->kind != DECLARATION_ENUM) {
        return pool_print(
            e->pool, "%s_ARENA_BYTES", names_upper(e->pool, emit_name(e, type->name))
        );
    }
    if (type->kind != TYPE_ARRAY && type->kind != TYPE_MAP) {
        return NULL;
    }
    const char *inner = arena_bytes(e, type->element);
    const char *item =
        type->kind == TYPE_MAP ? emit_entry_type(e, type) : emit_c_type(e, type->element);
    return pool_print(
        e->pool,
        "8 + (size_t)%" PRIu64 " * (sizeof(%s)%s%s%s)",
        type->limit,
        item,
        inner == NULL ? "" : " + (",
        inner == NULL ? "" : inner,
        inner == NULL ? "" : ")"
    );
}

static void emit_arena(struct emitter *e, const char *upper, const struct record *record) {
    emit(e, "#define %s_ARENA_BYTES ((size_t)0", upper);
    for (const struct field *f = record->fields; f != NULL; f = f->next) {
        const char *bytes = arena_bytes(e, f->type);
        if (bytes != NULL) {
            emit(e, " + (%s)", bytes);
        }
    }
    emit(e, ")\n");
}

static void emit_field(struct emitter *e, const char *indent, const struct field *f) {
    emit_comment(e, indent, f->remark.above);
    emit_comment(e, indent, f->remark.behind);
    if (f->min_version > 0) {
        emit(e, "%s/* since version %" PRIu64 " */\n", indent, f->min_version);
    }
    if (f->type->is_nullable) {
        emit(e, "%sbool has_%s;\n", indent, f->name);
    }
    emit(e, "%s%s %s;\n", indent, emit_c_type(e, f->type), f->name);
}

/* What stands above a record's struct: its limits and slices. */
static void emit_record_parts(struct emitter *e, const char *upper, const struct record *record) {
    for (const struct field *f = record->fields; f != NULL; f = f->next) {
        emit_slices(e, f->type);
    }
    for (const struct field *f = record->fields; f != NULL; f = f->next) {
        emit_limits(e, pool_print(e->pool, "%s_%s", upper, names_upper(e->pool, f->name)), f->type);
    }
}

static void emit_struct(
    struct emitter *e,
    const char *name,
    struct place place,
    const char *comment,
    const struct record *record
) {
    const char *upper = names_upper(e->pool, name);
    emit_claim_new(e, name, place);
    emit_record_parts(e, upper, record);
    emit_comment(e, "", comment);
    emit(e, "struct %s {\n", name);
    for (const struct field *f = record->fields; f != NULL; f = f->next) {
        emit_field(e, "    ", f);
    }
    if (record->count == 0) {
        emit(e, "    uint8_t nothing; /* C wants a member */\n");
    }
    emit(e, "};\n");
    emit_arena(e, upper, record);
    emit(e, "\n");
}

static void emit_union(struct emitter *e, const struct declaration *d) {
    const char *name = emit_name(e, d->name);
    const char *upper = names_upper(e->pool, name);
    const char *tag = pool_print(e->pool, "%s_tag", name);
    emit_claim_new(e, name, d->place);
    emit_claim_new(e, tag, d->place);
    emit_record_parts(e, upper, &d->record);
    emit(e, "/* Which member of struct %s holds. */\nenum %s {\n", name, tag);
    for (const struct field *f = d->record.fields; f != NULL; f = f->next) {
        const char *value = pool_print(e->pool, "%s_TAG_%s", upper, names_upper(e->pool, f->name));
        emit_claim_new(e, value, f->place);
        emit(e, "    %s = %" PRIu64 "%s\n", value, f->number, f->next == NULL ? "" : ",");
    }
    emit(e, "};\n\n");
    emit_comment(e, "", d->remark.above);
    emit(e, "struct %s {\n    enum %s tag;\n    union {\n", name, tag);
    for (const struct field *f = d->record.fields; f != NULL; f = f->next) {
        emit_field(e, "        ", f);
    }
    emit(e, "    };\n};\n");
    emit_arena(e, upper, &d->record);
    emit(e, "\n");
}

static void emit_message(struct emitter *e, const struct message *m, const char *comment) {
    emit_struct(e, m->name, m->method->place, comment, m->record);
    emit(
        e,
        "/* Longest %1$s on the wire, packet header included. */\n"
        "#define %2$s_MAX_BYTES ((size_t)%3$" PRIu64 ")\n\n"
        "extern const struct ml_message_type %4$s_type;\n\n"
        "/* As one packet, for those who own their socket; see ml_codec_encode_packet. */\n"
        "ML_NODISCARD static inline enum ml_status %4$s_encode(\n"
        "    const struct %4$s *message,\n"
        "    uint32_t request_id,\n"
        "    void *buffer,\n"
        "    size_t size_bytes,\n"
        "    size_t *out_count_bytes,\n"
        "    struct ml_handles *out_handles\n"
        ") {\n"
        "    return ml_codec_encode_packet(\n"
        "        &%4$s_type, request_id, message, buffer, size_bytes, out_count_bytes, "
        "out_handles\n"
        "    );\n"
        "}\n\n"
        "/* The opposite; strings point into the packet, arrays into the arena; see\n"
        " * ml_codec_decode_packet. */\n"
        "ML_NODISCARD static inline enum ml_status %4$s_decode(\n"
        "    uint32_t request_id,\n"
        "    const void *packet,\n"
        "    size_t packet_bytes,\n"
        "    const int *fds,\n"
        "    size_t fd_count,\n"
        "    void *arena,\n"
        "    size_t arena_bytes,\n"
        "    struct %4$s *out_message\n"
        ") {\n"
        "    return ml_codec_decode_packet(\n"
        "        &%4$s_type, request_id, packet, packet_bytes, fds, fd_count, arena, arena_bytes,\n"
        "        out_message\n"
        "    );\n"
        "}\n\n",
        m->is_reply ? "reply" : "request",
        names_upper(e->pool, m->name),
        m->record->body_bytes_max + ML_PACKET_HEADER_BYTES,
        m->name
    );
}

/* Of a method that is answered: to call, to call and wait, and to answer. */
static void emit_call_stubs(struct emitter *e, const struct method *method) {
    emit(
        e,
        "void %1$s_thunk(\n"
        "    ml_function on_reply, void *context, enum ml_status status, const void *reply\n"
        ");\n\n"
        "/* Call; `on_reply` is called exactly once, unless this returns an error: with ML_OK and\n"
        " * the reply, which lives until it returns, or with the reason why there is none.\n"
        " * Descriptors in the reply belong to `on_reply`. */\n"
        "ML_NODISCARD static inline enum ml_status %1$s(\n"
        "    struct ml_port *to,\n"
        "    const struct %1$s_request *request,\n"
        "    void (*on_reply)(\n"
        "        void *context, enum ml_status status, const struct %1$s_reply *reply\n"
        "    ),\n"
        "    void *context\n"
        ") {\n"
        "    return to->call(\n"
        "        to, &%1$s_request_type, &%1$s_reply_type, request, %1$s_thunk,\n"
        "        (ml_function)on_reply, context\n"
        "    );\n"
        "}\n\n"
        "/* Call and wait at most `timeout_ms` for the reply, which lives until the next wait on\n"
        " * this port. Descriptors in it belong to the caller. */\n"
        "ML_NODISCARD static inline enum ml_status %1$s_wait(\n"
        "    struct ml_port *to,\n"
        "    const struct %1$s_request *request,\n"
        "    int timeout_ms,\n"
        "    struct %1$s_reply *out_reply\n"
        ") {\n"
        "    return to->call_wait(\n"
        "        to, &%1$s_request_type, &%1$s_reply_type, request, timeout_ms, out_reply\n"
        "    );\n"
        "}\n\n"
        "/* Answer a %2$s request, now or later, once. Descriptors stay the caller's. */\n"
        "ML_NODISCARD static inline enum ml_status %1$s_answer(\n"
        "    const struct ml_call *call, const struct %1$s_reply *reply\n"
        ") {\n"
        "    return call->port->send(call->port, &%1$s_reply_type, call->request_id, reply);\n"
        "}\n\n",
        emit_name(e, method->name),
        method->name
    );
}

static void emit_send_stub(struct emitter *e, const struct method *method) {
    emit(
        e,
        "/* Send; no reply follows. Descriptors stay the caller's. */\n"
        "ML_NODISCARD static inline enum ml_status %1$s(\n"
        "    struct ml_port *to, const struct %1$s_request *request\n"
        ") {\n"
        "    return to->send(to, &%1$s_request_type, 0, request);\n"
        "}\n\n",
        emit_name(e, method->name)
    );
}

static void emit_methods(struct emitter *e, const struct declaration *d) {
    const char *interface = emit_name(e, d->name);
    for (const struct method *m = d->methods; m != NULL; m = m->next) {
        const struct message request = emit_request_of(e, m);
        emit(e, "/* ---- %s.%s ---- */\n\n", d->name, m->name);
        emit_message(e, &request, m->remark.above != NULL ? m->remark.above : m->remark.behind);
        if (m->has_reply) {
            const struct message reply = emit_reply_of(e, m);
            emit_message(e, &reply, NULL);
            emit_call_stubs(e, m);
        } else {
            emit_send_stub(e, m);
        }
    }
    emit(e, "/* The methods of %s by number. */\nenum %s_method {\n", d->name, interface);
    for (const struct method *m = d->methods; m != NULL; m = m->next) {
        emit(
            e,
            "    %s_METHOD_%s = %" PRIu64 "%s\n",
            names_upper(e->pool, interface),
            names_upper(e->pool, names_snake(e->pool, m->name)),
            m->number,
            m->next == NULL ? "" : ","
        );
    }
    emit(e, "};\n\n");
}

static void emit_handlers(struct emitter *e, const struct declaration *d) {
    const char *interface = emit_name(e, d->name);
    emit_comment(e, "", d->remark.above);
    emit(
        e,
        "/* Whoever serves %s fills this in. A request lives until its handler returns; its\n"
        " * descriptors belong to the handler. NULL: not served, ML_PEER_STATE. */\n"
        "struct %s_handlers {\n",
        d->name,
        interface
    );
    for (const struct method *m = d->methods; m != NULL; m = m->next) {
        emit(
            e,
            "    void (*%s)(\n"
            "        void *context,\n"
            "        const struct ml_call *call,\n"
            "        const struct %s_request *request\n"
            "    );\n",
            names_snake(e->pool, m->name),
            emit_name(e, m->name)
        );
    }
    emit(
        e,
        "};\n\n"
        "extern const struct ml_interface %1$s_interface;\n\n"
        "/* The handlers as a channel wants them; they are borrowed and outlive it. */\n"
        "static inline struct ml_server %1$s_server(\n"
        "    const struct %1$s_handlers *handlers, void *context\n"
        ") {\n"
        "    return (struct ml_server){\n"
        "        .interface = &%1$s_interface, .handlers = handlers, .context = context};\n"
        "}\n\n",
        interface
    );
}

static void emit_declaration(struct emitter *e, const struct declaration *d) {
    switch (d->kind) {
    case DECLARATION_CONST:
        emit_const(e, d);
        break;
    case DECLARATION_ENUM:
        emit_enum(e, d);
        break;
    case DECLARATION_STRUCT:
        emit_struct(e, emit_name(e, d->name), d->place, d->remark.above, &d->record);
        break;
    case DECLARATION_UNION:
        emit_union(e, d);
        break;
    case DECLARATION_INTERFACE:
        emit_methods(e, d);
        emit_handlers(e, d);
        break;
    }
}

void emit_header(
    struct source *source, const struct contract *contract, const char *include_path, FILE *out
) {
    struct emitter e = emitter_start(source, contract, out);
    char *guard = pool_copy(e.pool, include_path, strlen(include_path));
    for (char *at = guard; *at != 0; at++) {
        if (strchr("/.-", *at) != NULL) {
            *at = '_';
        }
    }
    emit_banner(&e);
    emit(
        &e,
        "#ifndef MEMLOG_%1$s\n#define MEMLOG_%1$s\n\n"
        "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n"
        "#include \"ipc/wire/message.h\"\n#include \"mojom_like_idl/runtime/codec.h\"\n"
        "#include \"mojom_like_idl/runtime/layout.h\"\n\n",
        names_upper(e.pool, guard)
    );
    for (const struct declaration *d = contract->declarations; d != NULL; d = d->next) {
        emit_declaration(&e, d);
    }
    emit(&e, "#endif\n");
}
