#include "mojom_like_idl/idlc/parser.h"

#include <string.h>

struct parser {
    struct source *source;
    struct words words;
    int at;
    int depth; /* types within types */
};

/* Bounds the recursion of parser, checker and walkers; deeper types are unreadable anyway. */
enum { TYPE_DEPTH_MAX = 8 };

static const struct token *peek(const struct parser *p) {
    return &p->words.tokens[p->at];
}

static const struct token *take(struct parser *p) {
    const struct token *token = peek(p);
    if (token->kind != TOKEN_END) {
        p->at++;
    }
    return token;
}

static bool next_is(const struct parser *p, const char *text) {
    const struct token *token = peek(p);
    return (token->kind == TOKEN_SIGN || token->kind == TOKEN_NAME) &&
           strcmp(token->text, text) == 0;
}

static bool skip(struct parser *p, const char *text) {
    if (!next_is(p, text)) {
        return false;
    }
    p->at++;
    return true;
}

static void fail(struct parser *p, const char *expected) {
    const struct token *token = peek(p);
    source_error(
        p->source, token->place, "expected %s, found %s", expected, lexer_describe(p->source, token)
    );
}

/* `where` completes "expected ';' ...". */
static void expect(struct parser *p, const char *sign, const char *where) {
    if (!skip(p, sign)) {
        fail(p, pool_print(p->source->pool, "'%s' %s", sign, where));
    }
}

static const char *expect_name(struct parser *p, const char *what) {
    if (peek(p)->kind != TOKEN_NAME) {
        fail(p, what);
        return "";
    }
    return take(p)->text;
}

static uint64_t expect_integer(struct parser *p, const char *what) {
    if (peek(p)->kind != TOKEN_INTEGER) {
        fail(p, what);
        return 0;
    }
    return take(p)->number;
}

/* The whole lines of comment that end right above the next token, if it begins its line. */
static const char *comment_above(struct parser *p) {
    const struct words *words = &p->words;
    const int line = peek(p)->place.line;
    if (p->at > 0 && words->tokens[p->at - 1].place.line == line) {
        return NULL;
    }
    int last = words->comment_count;
    while (last > 0 && words->comments[last - 1].line >= line) {
        last--;
    }
    int first = last;
    while (first > 0 && !words->comments[first - 1].follows_code &&
           words->comments[first - 1].line == line - (last - first) - 1) {
        first--;
    }
    const char *text = NULL;
    for (int i = first; i < last; i++) {
        const char *more = words->comments[i].text;
        text = text == NULL ? more : pool_print(p->source->pool, "%s\n%s", text, more);
    }
    return text;
}

/* The comment behind the token just taken. */
static const char *comment_behind(struct parser *p) {
    const int line = p->at == 0 ? 0 : p->words.tokens[p->at - 1].place.line;
    if (peek(p)->kind != TOKEN_END && peek(p)->place.line == line) {
        return NULL;
    }
    for (int i = 0; i < p->words.comment_count; i++) {
        if (p->words.comments[i].line == line && p->words.comments[i].follows_code) {
            return p->words.comments[i].text;
        }
    }
    return NULL;
}

static struct type *parse_type(struct parser *p);

static void parse_limit(struct parser *p, struct type *type) {
    type->limit_place = peek(p)->place;
    if (peek(p)->kind == TOKEN_NAME) {
        type->limit_name = take(p)->text;
    } else {
        type->limit = expect_integer(p, "a limit (a number or a const)");
    }
}

static void parse_string(struct parser *p, struct type *type, const char *name) {
    expect(p, "<", pool_print(p->source->pool, "and a limit: %s<BYTES>", name));
    parse_limit(p, type);
    expect(p, ">", "after the limit");
}

static void parse_array(struct parser *p, struct type *type) {
    expect(p, "<", "and an element and a limit: array<TYPE, COUNT>");
    type->element = parse_type(p);
    expect(p, ",", "and a limit: array<TYPE, COUNT>");
    parse_limit(p, type);
    expect(p, ">", "after the limit");
}

static void parse_map(struct parser *p, struct type *type) {
    expect(p, "<", "and key, value and a limit: map<KEY, VALUE, COUNT>");
    type->key = parse_type(p);
    expect(p, ",", "and a value: map<KEY, VALUE, COUNT>");
    type->element = parse_type(p);
    expect(p, ",", "and a limit: map<KEY, VALUE, COUNT>");
    parse_limit(p, type);
    expect(p, ">", "after the limit");
}

static void parse_handle(struct parser *p, struct type *type) {
    static const struct {
        const char *name;
        enum handle_kind kind;
    } kinds[] = {
        {"pipe", HANDLE_PIPE},
        {"memfd", HANDLE_MEMFD},
        {"file", HANDLE_FILE},
        {"socket", HANDLE_SOCKET},
    };
    expect(p, "<", "and a kind: handle<pipe>");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (skip(p, kinds[i].name)) {
            type->handle = kinds[i].kind;
            expect(p, ">", "after the kind");
            return;
        }
    }
    fail(p, "'pipe', 'memfd', 'file' or 'socket'");
}

static struct type *parse_type(struct parser *p) {
    static const struct {
        const char *name;
        enum type_kind kind;
        int bits;
    } simple[] = {
        {"bool", TYPE_BOOL, 8},
        {"int8", TYPE_INT, 8},
        {"int16", TYPE_INT, 16},
        {"int32", TYPE_INT, 32},
        {"int64", TYPE_INT, 64},
        {"uint8", TYPE_UINT, 8},
        {"uint16", TYPE_UINT, 16},
        {"uint32", TYPE_UINT, 32},
        {"uint64", TYPE_UINT, 64},
        {"float", TYPE_FLOAT, 32},
        {"double", TYPE_FLOAT, 64},
        {"string", TYPE_STRING, 0},
        {"bytes", TYPE_BYTES, 0},
        {"array", TYPE_ARRAY, 0},
        {"map", TYPE_MAP, 0},
        {"handle", TYPE_HANDLE, 0},
    };
    struct type *type = pool_take(p->source->pool, sizeof(*type));
    type->place = peek(p)->place;
    type->kind = TYPE_NAMED;
    const char *name = expect_name(p, "a type");
    type->name = name;
    for (size_t i = 0; i < sizeof(simple) / sizeof(simple[0]); i++) {
        if (strcmp(name, simple[i].name) == 0) {
            type->kind = simple[i].kind;
            type->bits = simple[i].bits;
        }
    }
    if (p->depth == TYPE_DEPTH_MAX) {
        source_error(
            p->source, type->place, "expected at most %d types within each other", TYPE_DEPTH_MAX
        );
    }
    if (p->source->failed) {
        return type; /* also ends the recursion at the end of the file */
    }
    p->depth++;
    if (type->kind == TYPE_STRING || type->kind == TYPE_BYTES) {
        parse_string(p, type, name);
    } else if (type->kind == TYPE_ARRAY) {
        parse_array(p, type);
    } else if (type->kind == TYPE_MAP) {
        parse_map(p, type);
    } else if (type->kind == TYPE_HANDLE) {
        parse_handle(p, type);
    }
    p->depth--;
    type->is_nullable = skip(p, "?");
    return type;
}

/* What may stand in [ ] before a field. */
static void parse_attributes(struct parser *p, struct field *field) {
    if (!skip(p, "[")) {
        return;
    }
    do {
        const struct place place = peek(p)->place;
        if (skip(p, "MinVersion")) {
            field->min_version_place = place;
            expect(p, "=", "after MinVersion");
            field->min_version = expect_integer(p, "a version");
        } else if (skip(p, "Unsealed")) {
            field->unsealed_place = place;
        } else {
            fail(p, "'MinVersion' or 'Unsealed'");
        }
    } while (skip(p, ","));
    expect(p, "]", "after the attributes");
}

static struct field *parse_field(struct parser *p) {
    struct field *field = pool_take(p->source->pool, sizeof(*field));
    field->remark.above = comment_above(p);
    parse_attributes(p, field);
    field->type = parse_type(p);
    field->place = peek(p)->place;
    field->name = expect_name(p, "a field name");
    return field;
}

/* "(" fields parted by commas ")" */
static struct record parse_parameters(struct parser *p) {
    struct record record = {0};
    struct field **end = &record.fields;
    expect(p, "(", "before the parameters");
    if (skip(p, ")")) {
        return record;
    }
    while (!p->source->failed) {
        struct field *field = parse_field(p);
        *end = field;
        end = &field->next;
        record.count++;
        if (!skip(p, ",")) {
            expect(p, ")", "or ',' after a parameter");
            break;
        }
        field->remark.behind = comment_behind(p);
    }
    return record;
}

/* "{" fields, each closed by ";" "}"; of a union each with @TAG. */
static struct record parse_fields(struct parser *p, bool is_union) {
    struct record record = {0};
    struct field **end = &record.fields;
    expect(p, "{", is_union ? "before the members" : "before the fields");
    while (!p->source->failed && !skip(p, "}")) {
        struct field *field = parse_field(p);
        if (is_union) {
            expect(p, "@", "and the member's number: TYPE NAME@NUMBER");
            field->number = expect_integer(p, "the member's number");
        }
        expect(p, ";", "after the field");
        field->remark.behind = comment_behind(p);
        *end = field;
        end = &field->next;
        record.count++;
    }
    return record;
}

static int64_t parse_enum_number(struct parser *p) {
    const struct place place = peek(p)->place;
    const bool is_negative = skip(p, "-");
    const uint64_t number = expect_integer(p, "a number");
    if (number > (uint64_t)INT32_MAX + (is_negative ? 1 : 0)) {
        source_error(p->source, place, "expected a number that fits 32 bits with a sign");
        return 0;
    }
    return is_negative ? -(int64_t)number : (int64_t)number;
}

static void parse_enum(struct parser *p, struct declaration *declaration) {
    struct enum_value **end = &declaration->values;
    int64_t number = 0;
    expect(p, "{", "before the values");
    while (!p->source->failed && !skip(p, "}")) {
        struct enum_value *value = pool_take(p->source->pool, sizeof(*value));
        value->place = peek(p)->place;
        value->remark.above = comment_above(p);
        value->name = expect_name(p, "a value's name");
        value->number = skip(p, "=") ? parse_enum_number(p) : number;
        number = value->number + 1;
        if (!skip(p, ",") && !next_is(p, "}")) {
            fail(p, "',' or '}' after the value");
        }
        value->remark.behind = comment_behind(p);
        *end = value;
        end = &value->next;
    }
}

static void parse_const(struct parser *p, struct declaration *declaration) {
    expect(p, "=", "and the value of the const");
    declaration->const_place = peek(p)->place;
    declaration->const_is_negative = skip(p, "-");
    if (skip(p, "true")) {
        declaration->const_text = "true";
    } else if (skip(p, "false")) {
        declaration->const_text = "false";
    } else if (peek(p)->kind == TOKEN_STRING) {
        declaration->const_text = take(p)->text;
    } else {
        declaration->const_number = expect_integer(p, "a number, a string, 'true' or 'false'");
    }
}

static void parse_interface(struct parser *p, struct declaration *declaration) {
    struct method **end = &declaration->methods;
    expect(p, "{", "before the methods");
    while (!p->source->failed && !skip(p, "}")) {
        struct method *method = pool_take(p->source->pool, sizeof(*method));
        method->place = peek(p)->place;
        method->remark.above = comment_above(p);
        method->name = expect_name(p, "a method's name");
        expect(p, "@", "and the method's number: NAME@NUMBER(...)");
        method->number_place = peek(p)->place;
        method->number = expect_integer(p, "the method's number");
        method->request = parse_parameters(p);
        method->has_reply = skip(p, "=>");
        if (method->has_reply) {
            method->reply = parse_parameters(p);
        }
        expect(p, ";", "or '=>' after the parameters");
        method->remark.behind = comment_behind(p);
        *end = method;
        end = &method->next;
    }
}

static struct declaration *parse_declaration(struct parser *p) {
    struct declaration *declaration = pool_take(p->source->pool, sizeof(*declaration));
    declaration->remark.above = comment_above(p);
    if (skip(p, "const")) {
        declaration->kind = DECLARATION_CONST;
        /* A const string needs no limit: its text is its limit. */
        if (next_is(p, "string")) {
            declaration->const_type = pool_take(p->source->pool, sizeof(struct type));
            *declaration->const_type =
                (struct type){.kind = TYPE_STRING, .place = take(p)->place, .name = "string"};
        } else {
            declaration->const_type = parse_type(p);
        }
    } else if (skip(p, "enum")) {
        declaration->kind = DECLARATION_ENUM;
    } else if (skip(p, "struct")) {
        declaration->kind = DECLARATION_STRUCT;
    } else if (skip(p, "union")) {
        declaration->kind = DECLARATION_UNION;
    } else if (skip(p, "interface")) {
        declaration->kind = DECLARATION_INTERFACE;
    } else {
        fail(p, "'const', 'enum', 'struct', 'union' or 'interface'");
        return declaration;
    }
    declaration->place = peek(p)->place;
    declaration->name = expect_name(p, "a name");
    if (declaration->kind == DECLARATION_CONST) {
        parse_const(p, declaration);
        expect(p, ";", "after the const");
    } else {
        if (declaration->kind == DECLARATION_ENUM) {
            parse_enum(p, declaration);
        } else if (declaration->kind == DECLARATION_INTERFACE) {
            parse_interface(p, declaration);
        } else {
            declaration->record = parse_fields(p, declaration->kind == DECLARATION_UNION);
        }
        expect(p, ";", "after '}'");
    }
    declaration->remark.behind = comment_behind(p);
    return declaration;
}

struct contract *parser_read(struct source *source) {
    struct parser p = {.source = source, .words = lexer_cut(source)};
    if (source->failed) {
        return NULL;
    }
    struct contract *contract = pool_take(source->pool, sizeof(*contract));
    contract->remark.above = comment_above(&p);
    if (!skip(&p, "module")) {
        fail(&p, "'module' and its name");
    }
    contract->module = expect_name(&p, "the module's name");
    while (skip(&p, ".")) {
        const char *part = expect_name(&p, "a name after '.'");
        contract->module = pool_print(source->pool, "%s_%s", contract->module, part);
    }
    expect(&p, ";", "after the module's name");
    struct declaration **end = &contract->declarations;
    while (!source->failed && peek(&p)->kind != TOKEN_END) {
        struct declaration *declaration = parse_declaration(&p);
        *end = declaration;
        end = &declaration->next;
    }
    return source->failed ? NULL : contract;
}
