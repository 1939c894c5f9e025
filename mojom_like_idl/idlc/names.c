#include "mojom_like_idl/idlc/names.h"

#include <ctype.h>
#include <string.h>

static bool all_alnum(const char *name) {
    for (; *name != 0; name++) {
        if (!isalnum((unsigned char)*name)) {
            return false;
        }
    }
    return true;
}

bool names_is_camel(const char *name) {
    return isupper((unsigned char)name[0]) && all_alnum(name);
}

bool names_is_constant(const char *name) {
    return name[0] == 'k' && names_is_camel(name + 1);
}

bool names_is_snake(const char *name) {
    if (!islower((unsigned char)name[0])) {
        return false;
    }
    for (; *name != 0; name++) {
        if (!islower((unsigned char)*name) && !isdigit((unsigned char)*name) && *name != '_') {
            return false;
        }
    }
    return true;
}

bool names_is_reserved(const char *name) {
    static const char *const words[] = {
        "auto",     "bool",    "break",    "case",     "char",   "class", "const",   "continue",
        "default",  "delete",  "do",       "double",   "else",   "enum",  "extern",  "false",
        "float",    "for",     "goto",     "if",       "inline", "int",   "long",    "new",
        "private",  "public",  "register", "restrict", "return", "short", "signed",  "sizeof",
        "static",   "struct",  "switch",   "template", "this",   "true",  "typedef", "union",
        "unsigned", "virtual", "void",     "volatile", "while",  "errno", "linux",   "unix"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(name, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

const char *names_snake(struct pool *pool, const char *name) {
    char *snake = pool_take(pool, 2 * strlen(name) + 1);
    char *to = snake;
    const char *from = names_is_constant(name) ? name + 1 : name;
    for (const char *at = from; *at != 0; at++) {
        const bool is_upper = isupper((unsigned char)*at);
        const bool ends_word = at > from && !isupper((unsigned char)at[-1]);
        const bool starts_word = at > from && islower((unsigned char)at[1]);
        if (is_upper && (ends_word || starts_word)) {
            *to++ = '_';
        }
        *to++ = (char)tolower((unsigned char)*at);
    }
    return snake;
}

const char *names_upper(struct pool *pool, const char *name) {
    char *upper = pool_copy(pool, name, strlen(name));
    for (char *at = upper; *at != 0; at++) {
        *at = (char)toupper((unsigned char)*at);
    }
    return upper;
}

const char *names_type(struct pool *pool, const struct type *type) {
    switch (type->kind) {
    case TYPE_BOOL:
        return "bool";
    case TYPE_INT:
        return pool_print(pool, "int%d", type->bits);
    case TYPE_UINT:
        return pool_print(pool, "uint%d", type->bits);
    case TYPE_FLOAT:
        return type->bits == 32 ? "float" : "double";
    case TYPE_STRING:
        return "string";
    case TYPE_BYTES:
        return "bytes";
    case TYPE_HANDLE:
        return "handle";
    case TYPE_ARRAY:
        return pool_print(pool, "%s_array", names_type(pool, type->element));
    case TYPE_MAP:
        return pool_print(
            pool, "%s_%s_map", names_type(pool, type->key), names_type(pool, type->element)
        );
    case TYPE_NAMED:
        return names_snake(pool, type->name);
    }
    return "";
}
