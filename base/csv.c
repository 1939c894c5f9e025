#include "base/csv.h"

#include <stddef.h>
#include <string.h>

#include "base/printable.h"

/* Whether a cell that begins with this character is a formula to a spreadsheet. */
static bool is_formula(const char *text) {
    static const char *const wide[] = {"\uff1d", "\uff0b", "\uff0d", "\uff20"};

    if (*text && strchr("=+-@", *text)) {
        return true;
    }
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++) {
        if (strncmp(text, wide[i], strlen(wide[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Where a formula may begin: some spreadsheets drop leading blanks and quotes. */
static void put_guarded(FILE *out, const char *text, size_t count_bytes) {
    if (is_formula(text + strspn(text, " \""))) {
        putc('\'', out);
    }
    ml_printable_put(out, text, count_bytes);
}

void ml_csv_open(FILE *out) {
    putc('"', out);
}

void ml_csv_put(FILE *out, const char *text, char sign, bool is_first) {
    const char stops[] = {'"', ';', sign, '\0'};
    bool is_start = true;

    if (!is_first) {
        putc(sign, out);
    }
    while (*text) {
        const size_t count = strcspn(text, stops);

        if (is_start) {
            put_guarded(out, text, count);
        } else {
            ml_printable_put(out, text, count);
        }
        text += count;
        is_start = false;
        if (*text == '"') {
            fputs("\"\"", out);
            text++;
        } else if (*text) {
            is_start = *text == ';' && sign != ';';
            putc(*text == sign ? ':' : *text, out);
            text++;
        }
    }
}

void ml_csv_close(FILE *out) {
    putc('"', out);
}

void ml_csv_text(FILE *out, const char *text) {
    ml_csv_open(out);
    ml_csv_put(out, text, '\0', true);
    ml_csv_close(out);
}
