#include "mojom_like_idl/idlc/emit.h"

#include <stdarg.h>
#include <string.h>

#include "mojom_like_idl/idlc/emit_internal.h"
#include "mojom_like_idl/idlc/names.h"

struct emitter emitter_start(struct source *source, const struct contract *contract, FILE *out) {
    return (struct emitter
    ){.source = source,
      .pool = source->pool,
      .contract = contract,
      .out = out,
      .prefix = contract->module};
}

void emit(struct emitter *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    (void)vfprintf(e->out, format, args); /* main looks at ferror once, at the end */
    va_end(args);
}

/* A comment's end within a comment would end it. */
static void emit_comment_text(struct emitter *e, const char *text, size_t count_bytes) {
    for (size_t i = 0; i < count_bytes; i++) {
        const bool opens = text[i] == '/' && i + 1 < count_bytes && text[i + 1] == '*';
        const bool closes = text[i] == '*' && i + 1 < count_bytes && text[i + 1] == '/';
        emit(e, opens || closes ? "%c " : "%c", text[i]);
    }
}

/* The lines of a comment that is begun, and its end. */
static void emit_comment_lines(struct emitter *e, const char *indent, const char *text) {
    for (;;) {
        const size_t line_bytes = strcspn(text, "\n");
        emit_comment_text(e, text, line_bytes);
        text += line_bytes;
        if (*text == 0) {
            break;
        }
        text++;
        emit(e, "\n%s *%s", indent, *text == '\n' || *text == 0 ? "" : " ");
    }
    emit(e, " */\n");
}

void emit_comment(struct emitter *e, const char *indent, const char *text) {
    if (text != NULL) {
        emit(e, "%s/* ", indent);
        emit_comment_lines(e, indent, text);
    }
}

void emit_banner(struct emitter *e) {
    emit(
        e,
        "/* Generated from %s by idlc %s. Do not edit: change the .mojom and build.",
        e->source->name,
        IDLC_VERSION
    );
    const char *text = e->contract->remark.above;
    if (text != NULL) {
        emit(e, "\n *\n *%s", *text == '\n' ? "" : " ");
    }
    emit_comment_lines(e, "", text != NULL ? text : "");
}

static const struct claimed_name *find_claim(const struct emitter *e, const char *name) {
    const struct claimed_name *c = e->claimed;
    while (c != NULL && strcmp(c->name, name) != 0) {
        c = c->next;
    }
    return c;
}

bool emit_claim(struct emitter *e, const char *name, int line) {
    if (find_claim(e, name) != NULL) {
        return false;
    }
    struct claimed_name *claim = pool_take(e->pool, sizeof(*claim));
    *claim = (struct claimed_name){.next = e->claimed, .name = name, .line = line};
    e->claimed = claim;
    return true;
}

void emit_claim_new(struct emitter *e, const char *name, struct place place) {
    const struct claimed_name *other = find_claim(e, name);
    if (other != NULL) {
        source_error(
            e->source,
            place,
            "expected another name: in C it becomes '%s', as in line %d",
            name,
            other->line
        );
        return;
    }
    (void)emit_claim(e, name, place.line);
}

const char *emit_name(struct emitter *e, const char *name) {
    return pool_print(e->pool, "%s_%s", e->prefix, names_snake(e->pool, name));
}

const char *emit_slice_type(struct emitter *e, const struct type *type) {
    return pool_print(e->pool, "struct %s_%s", e->prefix, names_type(e->pool, type));
}

const char *emit_entry_type(struct emitter *e, const struct type *type) {
    return pool_print(
        e->pool,
        "struct %s_%s_%s_entry",
        e->prefix,
        names_type(e->pool, type->key),
        names_type(e->pool, type->element)
    );
}

const char *emit_c_type(struct emitter *e, const struct type *type) {
    switch (type->kind) {
    case TYPE_BOOL:
        return "bool";
    case TYPE_INT:
        return pool_print(e->pool, "int%d_t", type->bits);
    case TYPE_UINT:
        return pool_print(e->pool, "uint%d_t", type->bits);
    case TYPE_FLOAT:
        return type->bits == 32 ? "float" : "double";
    case TYPE_STRING:
        return "struct ml_string";
    case TYPE_BYTES:
        return "struct ml_bytes";
    case TYPE_HANDLE:
        return "int";
    case TYPE_ARRAY:
    case TYPE_MAP:
        return emit_slice_type(e, type);
    case TYPE_NAMED:
        return pool_print(
            e->pool,
            "%s %s",
            type->declaration->kind == DECLARATION_ENUM ? "enum" : "struct",
            emit_name(e, type->name)
        );
    }
    return "";
}

static struct message message_of(
    struct emitter *e, const struct method *method, const struct record *record, const char *suffix
) {
    return (struct message
    ){.method = method,
      .record = record,
      .name = pool_print(e->pool, "%s_%s", emit_name(e, method->name), suffix),
      .is_reply = record == &method->reply};
}

struct message emit_request_of(struct emitter *e, const struct method *method) {
    return message_of(e, method, &method->request, "request");
}

struct message emit_reply_of(struct emitter *e, const struct method *method) {
    return message_of(e, method, &method->reply, "reply");
}
