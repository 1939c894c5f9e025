#include "tools/analyzer/symbols/demangle.h"

#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

/* Names longer than this are left mangled: libiberty's time grows with them, and nobody reads them.
 */
enum { MANGLED_MAX_BYTES = 16 * 1024 };

/* Whether a suffix of the compiler's begins here: its word, then ".0", ".123" or the end. */
static bool is_compiler_suffix(const char *dot) {
    static const char *const words[] = {
        ".constprop", ".isra", ".part", ".cold", ".lto_priv", ".localalias", ".llvm", ".warm"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t count = strlen(words[i]);
        if (strncmp(dot, words[i], count) == 0 && (dot[count] == '.' || dot[count] == '\0')) {
            return true;
        }
    }
    return false;
}

size_t ml_function_name_bytes(const char *linkage) {
    /* A name may itself begin with a dot. */
    for (const char *at = linkage; *at; at++) {
        if (at > linkage && *at == '.' && is_compiler_suffix(at)) {
            return (size_t)(at - linkage);
        }
    }
    return (size_t)(strchr(linkage, '\0') - linkage);
}

bool ml_is_mangled(const char *linkage) {
    return strncmp(linkage, "_Z", 2) == 0 || strncmp(linkage, "_R", 2) == 0 ||
           strncmp(linkage, "__Z", 3) == 0;
}

char *ml_demangle(const char *linkage) {
    size_t count = ml_function_name_bytes(linkage);
    char *name = strndup(linkage, count);
    char *readable = NULL;

    if (name && ml_is_mangled(name) && count <= MANGLED_MAX_BYTES) {
        readable = cplus_demangle(name, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
    }
    if (readable) {
        free(name);
        return readable;
    }
    return name;
}
