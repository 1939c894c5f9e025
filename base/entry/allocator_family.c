#include "base/entry/allocator_family.h"

#include <string.h>

enum { PREFIX_BYTES = 12 };

/* By family. */
static const char names[ML_ALLOCATOR_FAMILIES_BUILT_IN][16] = {
    [ML_ALLOCATOR_FAMILY_PLAIN] = "malloc",
    [ML_ALLOCATOR_FAMILY_JEMALLOC] = "jemalloc",
    [ML_ALLOCATOR_FAMILY_RUST_JEMALLOC] = "rust-jemalloc",
    [ML_ALLOCATOR_FAMILY_MIMALLOC] = "mimalloc",
    [ML_ALLOCATOR_FAMILY_TCMALLOC] = "tcmalloc",
    [ML_ALLOCATOR_FAMILY_LONG_JEMALLOC] = "jemalloc-long",
};

static const char prefixes[ML_ALLOCATOR_FAMILIES_BUILT_IN][PREFIX_BYTES] = {
    [ML_ALLOCATOR_FAMILY_PLAIN] = "",
    [ML_ALLOCATOR_FAMILY_JEMALLOC] = "je_",
    [ML_ALLOCATOR_FAMILY_RUST_JEMALLOC] = "_rjem_",
    [ML_ALLOCATOR_FAMILY_MIMALLOC] = "mi_",
    [ML_ALLOCATOR_FAMILY_TCMALLOC] = "tc_",
    [ML_ALLOCATOR_FAMILY_LONG_JEMALLOC] = "jemalloc_",
};

/* Other names of the plain functions, in glibc and in whatever stands in for it. */
static const char plain_prefix[] = "__libc_";

static const char refusal_texts[ML_ALLOCATOR_LIST_REFUSAL_COUNT][ML_ALLOCATOR_LIST_TEXT_MAX] = {
    [ML_ALLOCATOR_LIST_READ] = "it can be read",
    [ML_ALLOCATOR_LIST_NO_EQUALS] = "it is not NAME=PREFIX",
    [ML_ALLOCATOR_LIST_NO_NAME] = "the name before = is missing",
    [ML_ALLOCATOR_LIST_NO_PREFIX] = "the prefix behind = is missing",
    [ML_ALLOCATOR_LIST_LONG] = "names and prefixes have at most 23 characters",
    [ML_ALLOCATOR_LIST_MANY] = "there are more than 8",
    [ML_ALLOCATOR_LIST_CHARACTER] = "it has a character that no name or prefix has",
    [ML_ALLOCATOR_LIST_TWICE] = "a name or prefix is there already",
    [ML_ALLOCATOR_LIST_FULL] = "these are more allocators than memlog takes",
};

const char *ml_allocator_list_refusal_text(enum ml_allocator_list_refusal refusal) {
    const uint32_t row = (uint32_t)refusal;
    return row < ML_ALLOCATOR_LIST_REFUSAL_COUNT ? refusal_texts[row] : "an unknown reason";
}

/* ---- the list that people give */

static bool is_letter_or_digit(char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '_';
}

static bool has_stranger(const char *text, size_t bytes, bool is_name) {
    for (size_t i = 0; i < bytes; i++) {
        if (!is_letter_or_digit(text[i]) && (!is_name || (text[i] != '-' && text[i] != '.'))) {
            return true;
        }
    }
    return false;
}

/* Offset of the first such character; the length where there is none. */
static size_t offset_of(const char *text, size_t bytes, char character) {
    size_t offset = 0;
    while (offset < bytes && text[offset] != character) {
        offset++;
    }
    return offset;
}

static bool
is_there(const struct ml_allocator_families *families, const char *name, const char *prefix) {
    for (uint32_t i = 0; i < families->count; i++) {
        if (strcmp(families->names[i], name) == 0 || strcmp(families->prefixes[i], prefix) == 0) {
            return true;
        }
    }
    for (uint32_t i = 0; i < ML_ALLOCATOR_FAMILIES_BUILT_IN; i++) {
        if (strcmp(names[i], name) == 0 || strcmp(prefixes[i], prefix) == 0) {
            return true;
        }
    }
    return strcmp(plain_prefix, prefix) == 0;
}

static enum ml_allocator_list_refusal
read_entry(struct ml_allocator_families *families, const char *text, size_t bytes) {
    const size_t name_bytes = offset_of(text, bytes, '=');
    if (name_bytes == bytes) {
        return ML_ALLOCATOR_LIST_NO_EQUALS;
    }
    const char *prefix = text + name_bytes + 1;
    const size_t prefix_bytes = bytes - name_bytes - 1;
    if (name_bytes == 0 || prefix_bytes == 0) {
        return name_bytes == 0 ? ML_ALLOCATOR_LIST_NO_NAME : ML_ALLOCATOR_LIST_NO_PREFIX;
    }
    if (name_bytes >= ML_ALLOCATOR_FAMILY_NAME_MAX || prefix_bytes >= ML_ALLOCATOR_PREFIX_MAX) {
        return ML_ALLOCATOR_LIST_LONG;
    }
    if (has_stranger(text, name_bytes, true) || has_stranger(prefix, prefix_bytes, false)) {
        return ML_ALLOCATOR_LIST_CHARACTER;
    }
    if (families->count == ML_ALLOCATOR_FAMILIES_GIVEN_MAX) {
        return ML_ALLOCATOR_LIST_MANY;
    }
    char name_text[ML_ALLOCATOR_FAMILY_NAME_MAX] = {0};
    char prefix_text[ML_ALLOCATOR_PREFIX_MAX] = {0};
    memcpy(name_text, text, name_bytes);
    memcpy(prefix_text, prefix, prefix_bytes);
    if (is_there(families, name_text, prefix_text)) {
        return ML_ALLOCATOR_LIST_TWICE;
    }
    memcpy(families->names[families->count], name_text, sizeof name_text);
    memcpy(families->prefixes[families->count], prefix_text, sizeof prefix_text);
    families->count++;
    return ML_ALLOCATOR_LIST_READ;
}

enum ml_allocator_list_refusal ml_allocator_families_read(
    const char *text, size_t text_bytes, struct ml_allocator_families *out_families
) {
    *out_families = (struct ml_allocator_families){.count = 0};
    for (size_t at = 0; text_bytes > 0 && at <= text_bytes;) {
        const size_t entry_bytes = offset_of(text + at, text_bytes - at, ',');
        const enum ml_allocator_list_refusal refusal =
            read_entry(out_families, text + at, entry_bytes);
        if (refusal != ML_ALLOCATOR_LIST_READ) {
            out_families->count = 0;
            return refusal;
        }
        at += entry_bytes + 1;
    }
    return ML_ALLOCATOR_LIST_READ;
}

enum ml_allocator_list_refusal
ml_allocator_families_add(char *list, size_t list_bytes, const char *one) {
    struct ml_allocator_families families;
    const size_t before = strlen(list);
    const size_t comma = before > 0 ? 1 : 0;
    const size_t one_bytes = strlen(one);
    if (one_bytes + comma >= list_bytes - before) {
        return ML_ALLOCATOR_LIST_FULL;
    }
    list[before] = ',';
    memcpy(list + before + comma, one, one_bytes + 1);
    const enum ml_allocator_list_refusal refusal =
        ml_allocator_families_read(list, before + comma + one_bytes, &families);
    if (refusal != ML_ALLOCATOR_LIST_READ) {
        list[before] = 0;
    }
    return refusal;
}

/* ---- names with their prefixes */

static bool is_of(
    const char *name,
    size_t name_bytes,
    const char *prefix,
    uint8_t family,
    struct ml_allocator_function *out_function
) {
    const size_t prefix_bytes = strlen(prefix);
    if (name_bytes <= prefix_bytes || memcmp(name, prefix, prefix_bytes) != 0 ||
        !ml_allocator_call_of(
            name + prefix_bytes, name_bytes - prefix_bytes, &out_function->call
        )) {
        return false;
    }
    out_function->family = family;
    out_function->prefix_bytes = (uint8_t)prefix_bytes;
    const uint32_t only = out_function->call.only_families;
    return only == 0 || (family < ML_ALLOCATOR_FAMILIES_BUILT_IN && (only >> family & 1) != 0);
}

bool ml_allocator_function_of(
    const char *name,
    size_t name_bytes,
    const struct ml_allocator_families *given,
    struct ml_allocator_function *out_function
) {
    if (name_bytes > ML_ALLOCATOR_FUNCTION_NAME_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < ML_ALLOCATOR_FAMILIES_BUILT_IN; i++) {
        if (is_of(name, name_bytes, prefixes[i], (uint8_t)i, out_function)) {
            return true;
        }
    }
    if (is_of(name, name_bytes, plain_prefix, ML_ALLOCATOR_FAMILY_PLAIN, out_function)) {
        return true;
    }
    for (uint32_t i = 0; given != NULL && i < given->count; i++) {
        const uint8_t family = (uint8_t)(ML_ALLOCATOR_FAMILIES_BUILT_IN + i);
        if (is_of(name, name_bytes, given->prefixes[i], family, out_function)) {
            return true;
        }
    }
    return false;
}

const char *ml_allocator_family_name(uint8_t family, const struct ml_allocator_families *given) {
    if (family < ML_ALLOCATOR_FAMILIES_BUILT_IN) {
        return names[family];
    }
    const uint32_t row = (uint32_t)family - ML_ALLOCATOR_FAMILIES_BUILT_IN;
    return given != NULL && row < given->count ? given->names[row] : "";
}

const char *ml_allocator_family_prefix(uint8_t family, const struct ml_allocator_families *given) {
    if (family < ML_ALLOCATOR_FAMILIES_BUILT_IN) {
        return prefixes[family];
    }
    const uint32_t row = (uint32_t)family - ML_ALLOCATOR_FAMILIES_BUILT_IN;
    return given != NULL && row < given->count ? given->prefixes[row] : "";
}
