#include "mojom_like_idl/idlc/checker.h"

#include <string.h>

#include "ipc/wire/message.h"
#include "mojom_like_idl/idlc/names.h"

struct checker {
    struct source *source;
    const struct contract *contract;
    const struct declaration *current; /* what stands below it is not known yet */
};

static const char *kind_name(enum declaration_kind kind) {
    static const char *const names[] = {
        [DECLARATION_CONST] = "const",
        [DECLARATION_ENUM] = "enum",
        [DECLARATION_STRUCT] = "struct",
        [DECLARATION_UNION] = "union",
        [DECLARATION_INTERFACE] = "interface"};
    return names[kind];
}

/* A declaration that stands above the current one. */
static const struct declaration *find(const struct checker *c, const char *name) {
    const struct declaration *d = c->contract->declarations;
    for (; d != c->current; d = d->next) {
        if (strcmp(d->name, name) == 0) {
            return d;
        }
    }
    return NULL;
}

static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t multiply(uint64_t a, uint64_t b) {
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* Bytes of msgpack's longest head for that many entries; a little more for the small ones. */
static uint64_t head_bytes(uint64_t count) {
    return count < 16 ? 1 : count < 256 ? 2 + 1 : count < 65536 ? 3 : 5;
}

static void check_limit(struct checker *c, struct type *type) {
    if (type->limit_name != NULL) {
        const struct declaration *d = find(c, type->limit_name);
        if (d == NULL || d->kind != DECLARATION_CONST || d->const_is_negative ||
            (d->const_type->kind != TYPE_UINT && d->const_type->kind != TYPE_INT)) {
            source_error(
                c->source,
                type->limit_place,
                "expected a limit, and '%s' is no whole const declared above",
                type->limit_name
            );
            return;
        }
        type->limit = d->const_number;
    }
    if (type->limit == 0 || type->limit > CHECKER_LIMIT_MAX) {
        source_error(
            c->source, type->limit_place, "expected a limit between 1 and %d", CHECKER_LIMIT_MAX
        );
    }
}

static void check_type(struct checker *c, struct type *type);

static void check_element(struct checker *c, struct type *element) {
    if (element->is_nullable) {
        source_error(
            c->source,
            element->place,
            "expected an element that is not nullable; put it into a struct of its own"
        );
    }
    check_type(c, element);
}

static void check_key(struct checker *c, struct type *key) {
    check_element(c, key);
    const bool is_enum = key->kind == TYPE_NAMED && key->declaration != NULL &&
                         key->declaration->kind == DECLARATION_ENUM;
    if (!is_enum && key->kind != TYPE_INT && key->kind != TYPE_UINT && key->kind != TYPE_STRING) {
        source_error(
            c->source, key->place, "expected a whole number, an enum or a string as a map's key"
        );
    }
}

static void check_named(struct checker *c, struct type *type) {
    const struct declaration *d = find(c, type->name);
    if (d == NULL) {
        source_error(
            c->source, type->place, "expected a type, and '%s' is not declared above", type->name
        );
        return;
    }
    if (d->kind == DECLARATION_CONST || d->kind == DECLARATION_INTERFACE) {
        source_error(
            c->source,
            type->place,
            "expected a type, found the %s '%s'",
            kind_name(d->kind),
            d->name
        );
        return;
    }
    type->declaration = d;
    type->body_bytes_max = d->kind == DECLARATION_ENUM ? 5 : d->record.body_bytes_max;
    type->handles_max = d->record.handles_max;
}

static uint32_t multiply_handles(uint64_t count, uint32_t handles) {
    const uint64_t product = multiply(count, handles);
    return product > UINT32_MAX ? UINT32_MAX : (uint32_t)product;
}

static void check_type(struct checker *c, struct type *type) {
    switch (type->kind) {
    case TYPE_BOOL:
        type->body_bytes_max = 1;
        break;
    case TYPE_INT:
    case TYPE_UINT:
    case TYPE_FLOAT:
        type->body_bytes_max = 1 + (uint64_t)type->bits / 8;
        break;
    case TYPE_STRING:
    case TYPE_BYTES:
        check_limit(c, type);
        type->body_bytes_max = add(5, type->limit);
        break;
    case TYPE_ARRAY:
        check_element(c, type->element);
        check_limit(c, type);
        type->body_bytes_max =
            add(head_bytes(type->limit), multiply(type->limit, type->element->body_bytes_max));
        type->handles_max = multiply_handles(type->limit, type->element->handles_max);
        break;
    case TYPE_MAP:
        check_key(c, type->key);
        check_element(c, type->element);
        check_limit(c, type);
        type->body_bytes_max =
            add(head_bytes(type->limit),
                multiply(type->limit, add(type->key->body_bytes_max, type->element->body_bytes_max))
            );
        type->handles_max = multiply_handles(type->limit, type->element->handles_max);
        break;
    case TYPE_HANDLE:
        type->body_bytes_max = 1;
        type->handles_max = 1;
        break;
    case TYPE_NAMED:
        check_named(c, type);
        break;
    }
}

static void check_attributes(struct checker *c, struct field *field, uint64_t version_before) {
    if (field->unsealed_place.line != 0) {
        if (field->type->kind != TYPE_HANDLE || field->type->handle != HANDLE_MEMFD) {
            source_error(
                c->source, field->unsealed_place, "expected [Unsealed] before a handle<memfd> only"
            );
        }
        field->type->handle = HANDLE_MEMFD_UNSEALED;
    }
    if (field->min_version_place.line != 0 &&
        (field->min_version == 0 || field->min_version >= UINT32_MAX)) {
        source_error(c->source, field->min_version_place, "expected a version from 1 to 2^32 - 2");
    }
    if (field->min_version < version_before) {
        source_error(
            c->source,
            field->place,
            "expected '%s' above the fields of version %llu: later versions only add at the end",
            field->name,
            (unsigned long long)version_before
        );
    }
    if (field->min_version > 0 && !field->type->is_nullable) {
        source_error(
            c->source,
            field->type->place,
            "expected '?' after the type of '%s', which older senders leave out",
            field->name
        );
    }
}

static void
check_field_name(struct checker *c, const struct field *field, const struct field *first) {
    if (!names_is_snake(field->name) || names_is_reserved(field->name)) {
        source_error(
            c->source,
            field->place,
            "expected a name_like_this that is no word of C, found '%s'",
            field->name
        );
    }
    for (const struct field *other = first; other != field; other = other->next) {
        const char *has = pool_print(c->source->pool, "has_%s", other->name);
        const char *own_has = pool_print(c->source->pool, "has_%s", field->name);
        if (strcmp(other->name, field->name) == 0 || strcmp(has, field->name) == 0 ||
            strcmp(own_has, other->name) == 0) {
            source_error(
                c->source,
                field->place,
                "expected a name of its own, and '%s' is taken in line %d",
                field->name,
                other->place.line
            );
        }
    }
}

static void check_record(struct checker *c, struct record *record) {
    uint64_t version = 0;
    uint64_t handles = 0;
    record->body_bytes_max = head_bytes((uint64_t)record->count);
    for (struct field *f = record->fields; f != NULL && !c->source->failed; f = f->next) {
        check_field_name(c, f, record->fields);
        check_type(c, f->type);
        check_attributes(c, f, version);
        version = f->min_version;
        record->body_bytes_max = add(record->body_bytes_max, f->type->body_bytes_max);
        handles += f->type->handles_max;
    }
    record->handles_max = handles > UINT32_MAX ? UINT32_MAX : (uint32_t)handles;
}

static void check_struct(struct checker *c, struct declaration *d) {
    if (d->record.count == 0) {
        source_error(c->source, d->place, "expected a field in struct '%s'", d->name);
    }
    check_record(c, &d->record);
}

static void check_union(struct checker *c, struct declaration *d) {
    uint64_t longest = 0;
    uint32_t handles = 0;
    if (d->record.count == 0) {
        source_error(c->source, d->place, "expected a member in union '%s'", d->name);
    }
    for (struct field *f = d->record.fields; f != NULL && !c->source->failed; f = f->next) {
        check_field_name(c, f, d->record.fields);
        if (strcmp(f->name, "tag") == 0) {
            source_error(
                c->source, f->place, "expected another name: 'tag' tells the members apart"
            );
        }
        check_element(c, f->type);
        if (f->min_version_place.line != 0) {
            source_error(
                c->source, f->min_version_place, "expected no MinVersion: a union has no order"
            );
        }
        check_attributes(c, f, 0);
        if (f->number == 0 || f->number > INT32_MAX) {
            source_error(c->source, f->place, "expected a number from 1 to 2^31 - 1 behind '@'");
        }
        for (const struct field *other = d->record.fields; other != f; other = other->next) {
            if (other->number >= f->number) {
                source_error(
                    c->source,
                    f->place,
                    "expected a number above %llu, the one in line %d",
                    (unsigned long long)other->number,
                    other->place.line
                );
            }
        }
        longest = f->type->body_bytes_max > longest ? f->type->body_bytes_max : longest;
        handles = f->type->handles_max > handles ? f->type->handles_max : handles;
    }
    d->record.body_bytes_max = add(1 + 5, longest);
    d->record.handles_max = handles;
}

static void check_enum(struct checker *c, struct declaration *d) {
    if (d->values == NULL) {
        source_error(c->source, d->place, "expected a value in enum '%s'", d->name);
    }
    for (const struct enum_value *v = d->values; v != NULL && !c->source->failed; v = v->next) {
        if (!names_is_constant(v->name)) {
            source_error(
                c->source, v->place, "expected a value named kLikeThis, found '%s'", v->name
            );
        }
        if (v->number > INT32_MAX) {
            source_error(c->source, v->place, "expected a number that fits 32 bits with a sign");
        }
        for (const struct enum_value *other = d->values; other != v; other = other->next) {
            if (strcmp(other->name, v->name) == 0 || other->number == v->number) {
                source_error(
                    c->source,
                    v->place,
                    "expected a name and a number of its own, and line %d has '%s' = %lld",
                    other->place.line,
                    other->name,
                    (long long)other->number
                );
            }
        }
    }
}

static void check_const_number(struct checker *c, const struct declaration *d) {
    const struct type *type = d->const_type;
    const bool is_signed = type->kind == TYPE_INT;
    uint64_t highest = UINT64_MAX >> (64 - type->bits + is_signed);
    if (d->const_is_negative) {
        highest = is_signed ? highest + 1 : 0;
    }
    if (d->const_text != NULL || d->const_number > highest) {
        source_error(
            c->source,
            d->const_place,
            "expected a number that %s%d can hold",
            is_signed ? "int" : "uint",
            type->bits
        );
    }
}

static void check_const(struct checker *c, struct declaration *d) {
    const struct type *type = d->const_type;
    if (type->is_nullable) {
        source_error(c->source, type->place, "expected a const that is not nullable");
    }
    if (type->kind == TYPE_INT || type->kind == TYPE_UINT) {
        check_const_number(c, d);
        return;
    }
    const bool is_truth = d->const_text != NULL && (strcmp(d->const_text, "true") == 0 ||
                                                    strcmp(d->const_text, "false") == 0);
    if (type->kind == TYPE_BOOL && !is_truth) {
        source_error(c->source, d->const_place, "expected 'true' or 'false'");
    } else if (type->kind == TYPE_STRING && (d->const_text == NULL || d->const_is_negative)) {
        source_error(c->source, d->const_place, "expected a string");
    } else if (type->kind != TYPE_BOOL && type->kind != TYPE_STRING) {
        source_error(c->source, type->place, "expected a whole number, a bool or a string");
    }
}

static void check_message(struct checker *c, const struct method *m, struct record *record) {
    check_record(c, record);
    if (record->handles_max > ML_HANDLES_MAX) {
        source_error(
            c->source,
            m->place,
            "expected at most %d handles in a message of '%s', found %u",
            ML_HANDLES_MAX,
            m->name,
            record->handles_max
        );
    }
    if (record->body_bytes_max > CHECKER_MESSAGE_BYTES_MAX) {
        source_error(
            c->source,
            m->place,
            "expected limits that keep a message of '%s' within %llu bytes, found %llu",
            m->name,
            (unsigned long long)CHECKER_MESSAGE_BYTES_MAX,
            (unsigned long long)record->body_bytes_max
        );
    }
}

static void check_method(struct checker *c, const struct declaration *d, struct method *m) {
    if (!names_is_camel(m->name)) {
        source_error(c->source, m->place, "expected a method NamedLikeThis, found '%s'", m->name);
    }
    if (m->number == 0 || m->number > INT32_MAX) {
        source_error(c->source, m->number_place, "expected a number from 1 to 2^31 - 1");
    }
    for (const struct method *other = d->methods; other != m; other = other->next) {
        if (other->number >= m->number) {
            source_error(
                c->source,
                m->number_place,
                "expected a number above %llu, the one in line %d",
                (unsigned long long)other->number,
                other->place.line
            );
        }
    }
    check_message(c, m, &m->request);
    if (m->has_reply) {
        check_message(c, m, &m->reply);
    }
}

static void check_interface(struct checker *c, struct declaration *d) {
    if (d->methods == NULL) {
        source_error(c->source, d->place, "expected a method in interface '%s'", d->name);
    }
    for (struct method *m = d->methods; m != NULL && !c->source->failed; m = m->next) {
        check_method(c, d, m);
    }
}

static void check_declaration_name(struct checker *c, const struct declaration *d) {
    const bool is_const = d->kind == DECLARATION_CONST;
    if (is_const ? !names_is_constant(d->name) : !names_is_camel(d->name)) {
        source_error(
            c->source,
            d->place,
            "expected a %s named %s, found '%s'",
            kind_name(d->kind),
            is_const ? "kLikeThis" : "LikeThis",
            d->name
        );
    }
    const struct declaration *other = find(c, d->name);
    if (other != NULL) {
        source_error(
            c->source,
            d->place,
            "expected a name of its own, and '%s' is taken in line %d",
            d->name,
            other->place.line
        );
    }
}

void checker_run(struct source *source, struct contract *contract) {
    struct checker c = {.source = source, .contract = contract};
    for (struct declaration *d = contract->declarations; d != NULL && !source->failed;
         d = d->next) {
        c.current = d;
        check_declaration_name(&c, d);
        switch (d->kind) {
        case DECLARATION_CONST:
            check_const(&c, d);
            break;
        case DECLARATION_ENUM:
            check_enum(&c, d);
            break;
        case DECLARATION_STRUCT:
            check_struct(&c, d);
            break;
        case DECLARATION_UNION:
            check_union(&c, d);
            break;
        case DECLARATION_INTERFACE:
            check_interface(&c, d);
            break;
        }
    }
}
