#include "mojom_like_idl/idlc/emit.h"

#include <inttypes.h>

#include "mojom_like_idl/idlc/emit_internal.h"
#include "mojom_like_idl/idlc/names.h"

static const char *handle_kind(const struct type *type) {
    static const char *const names[] = {
        [HANDLE_PIPE] = "ML_HANDLE_PIPE",
        [HANDLE_MEMFD] = "ML_HANDLE_MEMFD",
        [HANDLE_MEMFD_UNSEALED] = "ML_HANDLE_MEMFD_UNSEALED",
        [HANDLE_FILE] = "ML_HANDLE_FILE",
        [HANDLE_SOCKET] = "ML_HANDLE_SOCKET"};
    return names[type->handle];
}

/* Emit the tables that a type needs and return how to point at its own. `name` is the table's if it
 * gets one of its own. */
static const char *emit_layout(struct emitter *e, const char *name, const struct type *type) {
    const char *value = NULL;
    const char *key = NULL;
    switch (type->kind) {
    case TYPE_BOOL:
    case TYPE_INT:
    case TYPE_UINT:
    case TYPE_FLOAT:
        return pool_print(e->pool, "&ml_layout_%s", names_type(e->pool, type));
    case TYPE_NAMED:
        return pool_print(e->pool, "&%s_layout", emit_name(e, type->name));
    case TYPE_STRING:
    case TYPE_BYTES:
        emit(
            e,
            "ML_LAYOUT_TABLE struct ml_layout %s_layout = {\n"
            "    .kind = %s, .size_bytes = sizeof(%s), .limit = %" PRIu64 "};\n",
            name,
            type->kind == TYPE_STRING ? "ML_LAYOUT_STRING" : "ML_LAYOUT_BYTES",
            emit_c_type(e, type),
            type->limit
        );
        break;
    case TYPE_HANDLE:
        emit(
            e,
            "ML_LAYOUT_TABLE struct ml_layout %s_layout = {\n"
            "    .kind = ML_LAYOUT_HANDLE, .size_bytes = sizeof(int), .handle = %s};\n",
            name,
            handle_kind(type)
        );
        break;
    case TYPE_ARRAY:
        value = emit_layout(e, pool_print(e->pool, "%s_element", name), type->element);
        emit(
            e,
            "ML_LAYOUT_TABLE struct ml_layout %s_layout = {\n"
            "    .kind = ML_LAYOUT_ARRAY,\n"
            "    .size_bytes = sizeof(%s),\n"
            "    .limit = %" PRIu64 ",\n"
            "    .entry_bytes = sizeof(%s),\n"
            "    .value = %s};\n",
            name,
            emit_c_type(e, type),
            type->limit,
            emit_c_type(e, type->element),
            value
        );
        break;
    case TYPE_MAP:
        key = emit_layout(e, pool_print(e->pool, "%s_key", name), type->key);
        value = emit_layout(e, pool_print(e->pool, "%s_value", name), type->element);
        emit(
            e,
            "ML_LAYOUT_TABLE struct ml_layout %1$s_layout = {\n"
            "    .kind = ML_LAYOUT_MAP,\n"
            "    .size_bytes = sizeof(%2$s),\n"
            "    .limit = %3$" PRIu64 ",\n"
            "    .entry_bytes = sizeof(%4$s),\n"
            "    .value_offset = offsetof(%4$s, value),\n"
            "    .key = %5$s,\n"
            "    .value = %6$s};\n",
            name,
            emit_c_type(e, type),
            type->limit,
            emit_entry_type(e, type),
            key,
            value
        );
        break;
    }
    return pool_print(e->pool, "&%s_layout", name);
}

static void
emit_record(struct emitter *e, const char *name, const struct record *record, const char *kind) {
    const char **layouts = pool_take(e->pool, ((size_t)record->count + 1) * sizeof(*layouts));
    int count = 0;
    for (const struct field *f = record->fields; f != NULL; f = f->next) {
        layouts[count++] = emit_layout(e, pool_print(e->pool, "%s_%s", name, f->name), f->type);
    }
    if (record->count > 0) {
        emit(e, "ML_LAYOUT_TABLE struct ml_layout_field %s_fields[] = {\n", name);
        count = 0;
        for (const struct field *f = record->fields; f != NULL; f = f->next) {
            const char *has = "ML_LAYOUT_NOT_NULLABLE";
            if (f->type->is_nullable) {
                has = pool_print(e->pool, "offsetof(struct %s, has_%s)", name, f->name);
            }
            emit(
                e,
                "    {\"%s\", %s, offsetof(struct %s, %s), %s, %" PRIu64 "},\n",
                f->name,
                layouts[count++],
                name,
                f->name,
                has,
                f->number != 0 ? f->number : f->min_version
            );
        }
        emit(e, "};\n");
    }
    emit(
        e,
        "ML_LAYOUT_TABLE struct ml_layout %s_layout = {\n"
        "    .kind = %s, .size_bytes = sizeof(struct %s), .count = %d, .fields = %s%s};\n\n",
        name,
        kind,
        name,
        record->count,
        record->count > 0 ? name : "NULL",
        record->count > 0 ? "_fields" : ""
    );
}

static void emit_enum(struct emitter *e, const struct declaration *d) {
    const char *name = emit_name(e, d->name);
    int count = 0;
    emit(e, "ML_LAYOUT_TABLE int32_t %s_values[] = {", name);
    for (const struct enum_value *v = d->values; v != NULL; v = v->next) {
        /* C's literal for the least int32_t is an expression. */
        emit(
            e, v->number == INT32_MIN ? "%sINT32_MIN" : "%s%" PRId64, count++ ? ", " : "", v->number
        );
    }
    emit(
        e,
        "};\n"
        "ML_LAYOUT_TABLE struct ml_layout %1$s_layout = {\n"
        "    .kind = ML_LAYOUT_ENUM, .size_bytes = sizeof(enum %1$s), .count = %2$d, "
        ".values = %1$s_values};\n\n",
        name,
        count
    );
}

static void emit_message(struct emitter *e, const struct declaration *d, const struct message *m) {
    emit_record(e, m->name, m->record, "ML_LAYOUT_STRUCT");
    emit(
        e,
        "const struct ml_message_type %1$s_type = {\n"
        "    .name = \"%2$s.%3$s%4$s\",\n"
        "    .kind = %5$s,\n"
        "    .method = %6$" PRIu64 ",\n"
        "    .size_bytes = sizeof(struct %1$s),\n"
        "    .body_bytes_max = %7$" PRIu64 ",\n"
        "    .codec = &ml_mojom_codec,\n"
        "    .layout = &%1$s_layout};\n\n",
        m->name,
        d->name,
        m->method->name,
        m->is_reply ? " reply" : "",
        m->is_reply ? "ML_MESSAGE_REPLY" : "ML_MESSAGE_REQUEST",
        m->method->number,
        m->record->body_bytes_max
    );
}

static void emit_thunk(struct emitter *e, const char *name) {
    emit(
        e,
        "void %1$s_thunk(\n"
        "    ml_function on_reply, void *context, enum ml_status status, const void *reply\n"
        ") {\n"
        "    ((void (*)(void *, enum ml_status, const struct %1$s_reply *))on_reply)(\n"
        "        context, status, reply\n"
        "    );\n"
        "}\n\n",
        name
    );
}

static void emit_dispatch(struct emitter *e, const struct declaration *d) {
    emit(
        e,
        "static enum ml_status %1$s_dispatch(\n"
        "    const void *handlers, void *context, const struct ml_call *call, const void *request\n"
        ") {\n"
        "    const struct %1$s_handlers *to = handlers;\n"
        "    switch (call->method) {\n",
        emit_name(e, d->name)
    );
    for (const struct method *m = d->methods; m != NULL; m = m->next) {
        emit(
            e,
            "    case %1$" PRIu64 ":\n"
            "        if (to->%2$s == NULL) {\n"
            "            return ML_PEER_STATE;\n"
            "        }\n"
            "        to->%2$s(context, call, request);\n"
            "        return ML_OK;\n",
            m->number,
            names_snake(e->pool, m->name)
        );
    }
    emit(e, "    default:\n        return ML_PEER_UNKNOWN;\n    }\n}\n\n");
}

static void emit_interface(struct emitter *e, const struct declaration *d) {
    const char *interface = emit_name(e, d->name);
    int count = 0;
    for (const struct method *m = d->methods; m != NULL; m = m->next) {
        const struct message request = emit_request_of(e, m);
        emit_message(e, d, &request);
        if (m->has_reply) {
            const struct message reply = emit_reply_of(e, m);
            emit_message(e, d, &reply);
            emit_thunk(e, emit_name(e, m->name));
        }
    }
    emit_dispatch(e, d);
    emit(e, "static const struct ml_method %s_methods[] = {\n", interface);
    for (const struct method *m = d->methods; m != NULL; m = m->next) {
        const char *name = emit_name(e, m->name);
        const char *reply = m->has_reply ? pool_print(e->pool, "&%s_reply_type", name) : "NULL";
        emit(e, "    {&%s_request_type, %s},\n", name, reply);
        count++;
    }
    emit(
        e,
        "};\n"
        "const struct ml_interface %1$s_interface = {\n"
        "    .name = \"%2$s\",\n"
        "    .methods = %1$s_methods,\n"
        "    .method_count = %3$d,\n"
        "    .dispatch = %1$s_dispatch};\n\n",
        interface,
        d->name,
        count
    );
}

void emit_tables(
    struct source *source, const struct contract *contract, const char *include_path, FILE *out
) {
    struct emitter e = emitter_start(source, contract, out);
    emit_banner(&e);
    emit(&e, "#include \"%s\"\n\n", include_path);
    for (const struct declaration *d = contract->declarations; d != NULL; d = d->next) {
        if (d->kind == DECLARATION_ENUM) {
            emit_enum(&e, d);
        } else if (d->kind == DECLARATION_STRUCT) {
            emit_record(&e, emit_name(&e, d->name), &d->record, "ML_LAYOUT_STRUCT");
        } else if (d->kind == DECLARATION_UNION) {
            emit_record(&e, emit_name(&e, d->name), &d->record, "ML_LAYOUT_UNION");
        } else if (d->kind == DECLARATION_INTERFACE) {
            emit_interface(&e, d);
        }
    }
}
