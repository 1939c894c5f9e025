/* The list of programs that are not to be recorded, and what it is held against: a command line of
 * anybody's. A list that is not understood is none, and never an empty one. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/process/never_list.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

/* glibc's regcomp() doubles its tree at each '+' behind another one, and takes memory without bound
 * for counts of counts: (a{255}){255}. Whoever writes the list is trusted (its owner is looked at),
 * so the lists here are small, with few and small counts. */
enum { LIST_MAX_BYTES = 64, LINE_MAX_BYTES = 64 };

static char path[PATH_MAX];

/* Some line says something. */
static int says_something(const uint8_t *list, size_t count_bytes) {
    int at_start = 1;
    for (size_t i = 0; i < count_bytes; i++) {
        if (list[i] == '\n') {
            at_start = 1;
        } else if (at_start && strchr(" \t\r", list[i]) == NULL) {
            if (list[i] != '#') {
                return 1;
            }
            at_start = 0;
        }
    }
    return 0;
}

/* More than one count, one beyond 99, or more than a few '+'. */
static bool counts_much(const uint8_t *list, size_t count_bytes) {
    size_t digits = 0;
    size_t braces = 0;
    size_t pluses = 0;
    for (size_t i = 0; i < count_bytes; i++) {
        braces += list[i] == '{';
        pluses += list[i] == '+';
        digits = list[i] >= '0' && list[i] <= '9' ? digits + 1 : 0;
        if (pluses > 4 || braces > 1 || (braces > 0 && digits > 2)) {
            return true;
        }
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct ml_never_list list;
    struct ml_error_message error = {.text = ""};
    char line[LINE_MAX_BYTES + 1] = "";
    if (path[0] == '\0') {
        (void)snprintf(path, sizeof(path), "%s/never", fuzz_folder());
    }
    if (count_bytes == 0 || data[0] > LIST_MAX_BYTES || data[0] > count_bytes - 1) {
        return 0;
    }
    const size_t list_bytes = data[0];
    if (counts_much(data + 1, list_bytes)) {
        return 0;
    }
    const size_t left_bytes = count_bytes - 1 - list_bytes;
    memcpy(line, data + 1 + list_bytes, left_bytes < LINE_MAX_BYTES ? left_bytes : LINE_MAX_BYTES);
    fuzz_write(path, data + 1, list_bytes);
    if (ml_never_list_load_file(&list, path, geteuid(), &error) != ML_OK) {
        REQUIRE(error.text[0] != '\0');
        return 0;
    }
    REQUIRE((ml_never_list_count(&list) > 0) == says_something(data + 1, list_bytes));
    const int number = ml_never_list_match(&list, line, line);
    REQUIRE(number >= 0 && (size_t)number <= list_bytes + 1);
    ml_never_list_fini(&list);
    return 0;
}
