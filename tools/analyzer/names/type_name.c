#include "tools/analyzer/names/type_name.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* A part of a name. */
struct slice {
    const char *bytes;
    size_t count;
};

/* The parts of "RETURN scope::owner<..>::last<..>(parameters)". */
struct parts {
    struct slice scope; /* all in front of `last`; empty: none */
    struct slice owner; /* the scope's last word */
    struct slice last;
    bool has_parameters;
};

static bool is_text(struct slice slice, const char *text) {
    return slice.count == strlen(text) && memcmp(slice.bytes, text, slice.count) == 0;
}

static bool begins(struct slice slice, const char *text) {
    return slice.count >= strlen(text) && memcmp(slice.bytes, text, strlen(text)) == 0;
}

static bool ends(struct slice slice, const char *text) {
    const size_t count = strlen(text);

    return slice.count >= count && memcmp(slice.bytes + (slice.count - count), text, count) == 0;
}

static bool is_one_of(struct slice slice, const char *const *words) {
    for (; *words; words++) {
        if (is_text(slice, *words)) {
            return true;
        }
    }
    return false;
}

/* The length of an operator's name or a bracketed word at `at`, whose signs nest nothing; 0: there
 * is none. */
static size_t word_bytes(const char *at, const char *end) {
    static const char *const words[] = {
        "(anonymous namespace)",
        "operator new[]",
        "operator new",
        "operator()",
        "operator[]",
        "operator<<=",
        "operator>>=",
        "operator<=>",
        "operator<<",
        "operator>>",
        "operator<=",
        "operator>=",
        "operator->*",
        "operator->",
        "operator<",
        "operator>",
        "->"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t count = strlen(words[i]);
        if ((size_t)(end - at) >= count && memcmp(at, words[i], count) == 0) {
            return count;
        }
    }
    return 0;
}

/* The place of the first of `signs` in the text that no bracket encloses; its end: there is none.
 * A sign may open a bracket itself. */
static const char *find_outside(struct slice text, const char *signs) {
    const char *const end = text.bytes + text.count;
    int depth = 0;

    for (const char *at = text.bytes; at < end; at++) {
        const size_t word = word_bytes(at, end);
        if (word > 0) {
            at += word - 1;
            continue;
        }
        if (depth == 0 && strchr(signs, *at)) {
            return at;
        }
        depth += *at == '<' || *at == '(' || *at == '[' || *at == '{';
        depth -= *at == '>' || *at == ')' || *at == ']' || *at == '}';
    }
    return end;
}

static struct slice slice_of(const char *from, const char *to) {
    return (struct slice){.bytes = from, .count = (size_t)(to - from)};
}

/* What stands in front of the template's arguments, and of "[abi:...]". */
static struct slice base_of(struct slice name) {
    return slice_of(name.bytes, find_outside(name, "<["));
}

static struct slice trimmed(struct slice text) {
    while (text.count > 0 && text.bytes[0] == ' ') {
        text.bytes++;
        text.count--;
    }
    while (text.count > 0 && text.bytes[text.count - 1] == ' ') {
        text.count--;
    }
    return text;
}

/* An argument of a template, from 0; empty: there is none. */
static struct slice argument_of(struct slice name, unsigned number) {
    const char *const open = find_outside(name, "<");
    const char *const end = name.bytes + name.count;
    struct slice rest = {.bytes = end, .count = 0};

    if (open < end) {
        rest = slice_of(open + 1, end);
        rest.count = (size_t)(find_outside(rest, ">") - rest.bytes);
    }
    for (; number > 0 && rest.count > 0; number--) {
        const char *const comma = find_outside(rest, ",");
        const char *const behind = rest.bytes + rest.count;
        rest = slice_of(comma < behind ? comma + 1 : behind, behind);
    }
    return trimmed(slice_of(rest.bytes, find_outside(rest, ",")));
}

/* The text without what stands in front of the last "::" outside of brackets; *out_scope is that.
 */
static struct slice last_word(struct slice name, struct slice *out_scope) {
    const char *const end = name.bytes + name.count;
    struct slice rest = name;
    const char *at = find_outside(rest, ":");

    *out_scope = slice_of(name.bytes, name.bytes);
    while (at < end) {
        if (at + 1 < end && at[1] == ':') {
            *out_scope = slice_of(name.bytes, at);
            rest = slice_of(at + 2, end);
        }
        at = find_outside(slice_of(at + 2 < end ? at + 2 : end, end), ":");
    }
    return rest;
}

/* Rust's "<T as Trait>" and "<T>" are T. */
static struct slice self_type(struct slice scope) {
    struct slice inner;

    if (scope.count < 2 || scope.bytes[0] != '<' || scope.bytes[scope.count - 1] != '>') {
        return scope;
    }
    inner = slice_of(scope.bytes + 1, scope.bytes + scope.count - 1);
    inner.count = (size_t)(find_outside(inner, " ") - inner.bytes);
    return inner;
}

static struct parts parts_of(const char *function) {
    struct slice text = slice_of(function, function + strlen(function));
    const char *const parameters = find_outside(text, "(");
    struct parts parts = {.has_parameters = *parameters == '('};
    struct slice none;
    const char *space = NULL;

    text = slice_of(function, parameters);
    for (space = find_outside(text, " "); space < parameters; space = find_outside(text, " ")) {
        text = slice_of(space + 1, parameters); /* behind the type that it returns */
    }
    parts.last = last_word(text, &parts.scope);
    parts.scope = self_type(parts.scope);
    parts.owner = last_word(parts.scope, &none);
    return parts;
}

/* ---- What types are */

/* Its construction allocates nothing: numbers and pointers. */
static bool is_plain(struct slice type) {
    static const char *const words[] = {"bool",          "char",         "signed char",
                                        "unsigned char", "short",        "unsigned short",
                                        "int",           "unsigned int", "long",
                                        "unsigned long", "long long",    "unsigned long long",
                                        "float",         "double",       "long double",
                                        "wchar_t",       "char8_t",      "char16_t",
                                        "char32_t",      "std::byte",    NULL};

    return ends(type, "*") || is_one_of(type, words);
}

/* A name of a generic's own: the older form of Rust's linkage names has no other. Or no type at
 * all, but a number. */
static bool is_nameless(struct slice type) {
    const unsigned char first = type.count > 0 ? (unsigned char)type.bytes[0] : 0;

    return type.count == 0 || isdigit(first) ||
           (type.count == 1 && (isupper(first) || first == '_')) ||
           (first == '(' && !begins(type, "(anonymous namespace)"));
}

static enum ml_type_word
tell(enum ml_type_word word, struct slice type, char out_name[ML_TYPE_NAME_BYTES]) {
    const bool is_cut = type.count >= ML_TYPE_NAME_BYTES;

    if (is_nameless(type)) {
        return ML_TYPE_STOP;
    }
    snprintf(
        out_name,
        ML_TYPE_NAME_BYTES,
        "%.*s%s",
        (int)(is_cut ? ML_TYPE_NAME_BYTES - 4 : type.count),
        type.bytes,
        is_cut ? "..." : ""
    );
    ml_type_settle(out_name);
    return word;
}

/* Write the short name wherever the long one stands. */
static void shorten(char *name, const char *long_name, const char *short_name) {
    const size_t long_bytes = strlen(long_name);
    const size_t short_bytes = strlen(short_name);

    for (char *at = strstr(name, long_name); at; at = strstr(at, long_name)) {
        memcpy(at, short_name, short_bytes);
        memmove(at + short_bytes, at + long_bytes, strlen(at + long_bytes) + 1);
        at += short_bytes;
    }
}

void ml_type_settle(char name[ML_TYPE_NAME_BYTES]) {
    static const char *const wrappers[] = {"_Sp_counted_ptr_inplace", "__shared_ptr_emplace", NULL};
    const struct slice whole = slice_of(name, name + strlen(name));
    struct slice scope;
    const struct slice last = last_word(whole, &scope);

    if (begins(whole, "std::") && is_one_of(base_of(last), wrappers)) {
        const struct slice inner = argument_of(last, 0);
        if (!is_nameless(inner)) {
            memmove(name, inner.bytes, inner.count);
            name[inner.count] = '\0';
        }
    }
    shorten(
        name,
        "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >",
        "std::string"
    );
}

/* "WRAPPER<TYPE>" as the demangler writes it. */
static enum ml_type_word
tell_wrapped(const char *wrapper, struct slice type, char out_name[ML_TYPE_NAME_BYTES]) {
    char text[ML_TYPE_NAME_BYTES];

    if (is_nameless(type) || type.count + strlen(wrapper) + sizeof "< >" > sizeof text) {
        return ML_TYPE_STOP;
    }
    snprintf(
        text,
        sizeof text,
        "%s<%.*s%s>",
        wrapper,
        (int)type.count,
        type.bytes,
        ends(type, ">") ? " " : ""
    );
    return tell(ML_TYPE_ALLOCATED, slice_of(text, text + strlen(text)), out_name);
}

/* ---- Functions */

/* The T of an allocator<T>. */
static struct slice element_of(struct slice allocator) {
    struct slice scope;
    const struct slice last = last_word(allocator, &scope);

    if (ends(base_of(last), "llocator")) {
        return argument_of(last, 0);
    }
    return slice_of(allocator.bytes, allocator.bytes);
}

/* Functions that return uninitialized memory. */
static enum ml_type_word
of_allocating(const struct parts *parts, char out_name[ML_TYPE_NAME_BYTES]) {
    static const char *const typed[] = {
        "allocate", "Allocate", "allocate_at_least", "allocate_object", NULL};
    static const char *const others[] = {
        "do_allocate",
        "_M_allocate",
        "_M_get_node",
        "_M_create",
        "_S_create",
        "_S_allocate",
        "__libcpp_allocate",
        "__libcpp_operator_new",
        "_M_allocate_node",
        "_M_allocate_map",
        "_M_allocate_buckets",
        "_M_create_storage",
        NULL};
    const struct slice base = base_of(parts->last);
    struct slice element = element_of(parts->owner);

    if (is_text(base, "__allocate_guarded")) {
        return tell(ML_TYPE_ALLOCATED, element_of(argument_of(parts->last, 0)), out_name);
    }
    if (is_text(base, "_M_allocate_node") && is_text(base_of(parts->owner), "_Hashtable_alloc")) {
        return tell(ML_TYPE_ALLOCATED, element_of(argument_of(parts->owner, 0)), out_name);
    }
    if (!is_one_of(base, typed)) {
        return is_one_of(base, others) ? ML_TYPE_GO_ON : ML_TYPE_STOP;
    }
    if (is_text(base_of(parts->owner), "allocator_traits")) {
        element = element_of(argument_of(parts->owner, 0));
    }
    if (element.count == 0) {
        element = argument_of(parts->last, 0);
    }
    return is_nameless(element) ? ML_TYPE_GO_ON : tell(ML_TYPE_ALLOCATED, element, out_name);
}

/* Functions of C++'s containers: all that they allocate is of one type, unless an element's
 * constructor is inlined. */
static enum ml_type_word
of_container(const struct parts *parts, bool is_sure, char out_name[ML_TYPE_NAME_BYTES]) {
    const struct slice base = base_of(parts->owner);
    const struct slice first = argument_of(parts->owner, 0);
    const struct slice second = argument_of(parts->owner, 1);

    if (is_text(base, "string") || is_text(base, "basic_string")) {
        static const char letter[] = "char";
        const struct slice plain = slice_of(letter, letter + sizeof letter - 1);
        return tell(ML_TYPE_ALLOCATED, first.count > 0 ? first : plain, out_name);
    }
    if (is_text(base, "_Vector_base") ||
        (is_text(base, "vector") && !is_text(first, "bool") && (is_sure || is_plain(first)))) {
        return tell(ML_TYPE_ALLOCATED, first, out_name);
    }
    if (is_text(base, "_Rb_tree") && (is_sure || is_plain(second))) {
        return tell_wrapped("std::_Rb_tree_node", second, out_name);
    }
    if ((is_text(base, "list") || is_text(base, "_List_base")) && (is_sure || is_plain(first))) {
        return tell_wrapped("std::_List_node", first, out_name);
    }
    return ML_TYPE_STOP;
}

/* std::make_unique<T> and its like. They construct what they allocate. */
static enum ml_type_word of_maker(
    const struct parts *parts, const char *function, bool is_sure, char out_name[ML_TYPE_NAME_BYTES]
) {
    static const char *const makers[] = {
        "make_unique",
        "make_shared",
        "allocate_shared",
        "make_unique_for_overwrite",
        "make_shared_for_overwrite",
        NULL};
    static const char *const pointers[] = {"shared_ptr", "__shared_ptr", NULL};
    struct slice type = argument_of(parts->last, 0);

    if (strstr(function, "_Sp_alloc_shared_tag")) {
        if (is_one_of(base_of(parts->owner), pointers)) {
            type = argument_of(parts->owner, 0);
        } else if (!is_text(base_of(parts->last), "__shared_count")) {
            return ML_TYPE_STOP;
        }
    } else if (!is_one_of(base_of(parts->last), makers)) {
        return ML_TYPE_STOP;
    }
    if (ends(type, "[]")) {
        type = trimmed(slice_of(type.bytes, type.bytes + type.count - 2));
    }
    return is_sure || is_plain(type) ? tell(ML_TYPE_ALLOCATED, type, out_name) : ML_TYPE_STOP;
}

/* Rust's boxes and vectors, where the linkage name tells their types. */
static enum ml_type_word
of_rust(const struct parts *parts, bool is_sure, char out_name[ML_TYPE_NAME_BYTES]) {
    static const char *const makers[] = {
        "new",
        "try_new",
        "new_in",
        "pin",
        "new_uninit",
        "new_zeroed",
        "new_uninit_in",
        "new_uninit_slice",
        NULL};
    static const char *const movers[] = {
        "push",
        "reserve",
        "reserve_exact",
        "with_capacity",
        "with_capacity_in",
        "insert",
        "append",
        "shrink_to_fit",
        NULL};
    static const char *const boxes[] = {"Box", "Rc", "Arc", NULL};
    const struct slice base = base_of(parts->owner);
    const struct slice type = argument_of(parts->owner, 0);

    if (is_text(base, "RawVec") || (is_text(base, "Vec") && is_one_of(parts->last, movers)) ||
        (is_text(base, "Vec") && is_sure) ||
        (is_one_of(base, boxes) && is_one_of(parts->last, makers))) {
        return tell(ML_TYPE_ALLOCATED, type, out_name);
    }
    return ML_TYPE_STOP;
}

/* Allocating functions that know no type: C's, operator new, Rust's. */
static bool hands_on(const char *function, const struct parts *parts) {
    static const char *const names[] = {
        "malloc",
        "calloc",
        "realloc",
        "reallocarray",
        "aligned_alloc",
        "memalign",
        "posix_memalign",
        "operator new",
        "operator new[]",
        "exchange_malloc",
        "finish_grow",
        "__rust_alloc",
        "__rust_alloc_zeroed",
        "__rust_realloc",
        "__rdl_alloc",
        "__rdl_alloc_zeroed",
        "__rdl_realloc",
        "__rg_alloc",
        NULL};

    return (parts->scope.count == 0 && is_one_of(parts->last, names)) ||
           (begins(parts->scope, "__rustc") && is_one_of(parts->last, names)) ||
           strncmp(function, "alloc::alloc::", 14) == 0 ||
           strncmp(function, "<alloc::alloc::Global", 21) == 0 ||
           is_text(parts->owner, "RawVecInner") || begins(parts->owner, "RawVecInner<") ||
           (begins(parts->scope, "alloc::raw_vec") && is_one_of(base_of(parts->last), names));
}

/* Whether the linker's name is of a constructor: C1 to C5 behind the class's name. A function may
 * have the name of its namespace. */
static bool is_constructor(const char *linkage) {
    if (strncmp(linkage, "_Z", 2) != 0) {
        return false;
    }
    for (const char *at = strchr(linkage, 'C'); at; at = strchr(at + 1, 'C')) {
        if (at[1] >= '1' && at[1] <= '5' && (at[2] == 'E' || at[2] == 'I' || at[2] == 'B')) {
            return true;
        }
    }
    return false;
}

/* "Box<int>::Box(...)". */
static bool has_name_of_owner(const struct parts *parts) {
    const struct slice owner = base_of(parts->owner);
    const struct slice last = base_of(parts->last);

    return parts->has_parameters && owner.count > 0 && owner.count == last.count &&
           memcmp(owner.bytes, last.bytes, last.count) == 0;
}

enum ml_type_word
ml_type_of_frame(const struct ml_type_frame *frame, char out_name[ML_TYPE_NAME_BYTES]) {
    const struct parts parts = parts_of(frame->function);
    const bool is_std = is_text(parts.scope, "std") || begins(parts.scope, "std::");
    const struct slice whole = slice_of(frame->function, frame->function + strlen(frame->function));
    enum ml_type_word word = ML_TYPE_STOP;

    if (ends(whole, "[merged]")) {
        return ML_TYPE_STOP; /* functions of other types share the code */
    }
    if (hands_on(frame->function, &parts)) {
        return ML_TYPE_GO_ON;
    }
    word = of_allocating(&parts, out_name);
    if (word == ML_TYPE_ALLOCATED) {
        return word;
    }
    if (is_std &&
        of_container(&parts, word == ML_TYPE_GO_ON || frame->inlines_are_known, out_name) ==
            ML_TYPE_ALLOCATED) {
        return ML_TYPE_ALLOCATED;
    }
    if (word == ML_TYPE_GO_ON) {
        return word;
    }
    word = of_maker(&parts, frame->function, frame->inlines_are_known, out_name);
    if (word == ML_TYPE_STOP && begins(parts.scope, "alloc::")) {
        word = of_rust(&parts, frame->inlines_are_known, out_name);
    }
    if (word == ML_TYPE_STOP && !is_std && has_name_of_owner(&parts) &&
        is_constructor(frame->linkage)) {
        word = tell(ML_TYPE_CONSTRUCTED, parts.scope, out_name);
    }
    return word;
}
