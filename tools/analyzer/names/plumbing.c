#include "tools/analyzer/names/plumbing.h"

#include <stddef.h>
#include <string.h>

#include "tools/analyzer/names/allocator_frames.h"
#include "tools/analyzer/names/function_name.h"

static bool begins_with_one(const char *name, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strncmp(name, words[i], strlen(words[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool ml_is_startup(const char *function) {
    static const char *const names[] = {
        "_start",
        "__libc_start_main",
        "__libc_start_main_impl",
        "__libc_start_call_main",
        "start_thread",
        "clone",
        "__clone",
        "clone3",
        "__clone3",
        "__GI___clone3"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(function, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

bool ml_is_plumbing(const char *function) {
    /* With any return type in front. What C++ and Rust call through is theirs, not the program's.
     */
    static const char *const beginnings[] = {
        "std::",
        "__gnu_cxx::",
        "core::ops::function::",
        "<core::",
        "<std::",
        "__rust_begin_short_backtrace",
        "__rust_try"};
    static const size_t count = sizeof beginnings / sizeof beginnings[0];

    char bare[1024];

    if (ml_is_allocator_frame(function) || ml_is_startup(function) ||
        begins_with_one(function, beginnings, count)) {
        return true;
    }
    if (!strstr(function, " std::") && !strstr(function, " __gnu_cxx::") &&
        !strstr(function, " core::")) {
        return false; /* to take a name apart costs far more, and this is asked of every frame */
    }
    ml_function_name_bare(function, bare, sizeof bare);
    return begins_with_one(bare, beginnings, count);
}
