#include "base/html.h"

#include <string.h>

#include "base/printable.h"

void ml_html_text(FILE *out, const char *text) {
    while (*text) {
        const size_t plain = strcspn(text, "<>&\"'");

        ml_printable_put(out, text, plain);
        text += plain;
        if (*text) {
            fprintf(out, "&#%d;", *text++);
        }
    }
}
