#include "tools/analyzer/symbols/python_types.h"

#include <ctype.h>
#include <string.h>

/* Of PyTypeObject, Include/cpython/object.h: since Python 3.0 in this place. */
enum { AT_REFERENCES = 0, AT_TYPE = 8, AT_NAME = 24, AT_SIZE = 32, AT_ITEM_SIZE = 40 };

/* The least object, and more than any type's. */
enum { SIZE_LEAST = 16, SIZE_MOST = 1 << 20, NAME_MOST = 256 };

/* What can never end has this many references, or more (PEP 683). */
#define IMMORTAL (UINT64_C(1) << 30)

static const char metatype[] = "PyType_Type";

static bool
plain_word(const struct ml_vtables *vtables, uint64_t address, uint64_t least, uint64_t most) {
    struct ml_vtable_relocation word;

    return ml_vtables_word(vtables, address, &word) && !word.name && word.value >= least &&
           word.value <= most;
}

/* Of `type`, or of nothing before Python starts. */
static bool has_metatype(const struct ml_vtables *vtables, uint64_t address) {
    struct ml_vtable_relocation word;

    if (!ml_vtables_word(vtables, address, &word)) {
        return false;
    }
    if (word.name) {
        return strcmp(word.name, metatype) == 0;
    }
    return word.value == 0 || word.value == vtables->python_metatype;
}

/* Letters, digits, underlines and dots alone. */
static char *name_at(const struct ml_vtables *vtables, uint64_t address) {
    struct ml_vtable_relocation word;
    uint64_t count = 0;
    const char *text = NULL;
    size_t length = 0;

    if (!ml_vtables_word(vtables, address, &word) || word.name || word.value == 0) {
        return NULL;
    }
    text = ml_vtables_bytes(vtables, word.value, &count);
    while (text && length < count && length < NAME_MOST &&
           (isalnum((unsigned char)text[length]) || text[length] == '_' || text[length] == '.')) {
        length++;
    }
    if (!text || length == 0 || length == count || text[length] != '\0') {
        return NULL;
    }
    return strdup(text);
}

char *ml_python_types_find(const struct ml_vtables *vtables, uint64_t address) {
    if (!vtables->elf || address % sizeof(uint64_t) != 0 ||
        (!plain_word(vtables, address + AT_REFERENCES, 1, 1) &&
         !plain_word(vtables, address + AT_REFERENCES, IMMORTAL, UINT64_MAX)) ||
        !has_metatype(vtables, address + AT_TYPE) ||
        !plain_word(vtables, address + AT_SIZE, SIZE_LEAST, SIZE_MOST) ||
        !plain_word(vtables, address + AT_ITEM_SIZE, 0, SIZE_MOST)) {
        return NULL;
    }
    return name_at(vtables, address + AT_NAME);
}
