#include "base/metric_label.h"

#include <string.h>

#include "base/printable.h"

void ml_metric_label(FILE *out, const char *text) {
    while (*text) {
        const size_t plain = strcspn(text, "\"\\");

        ml_printable_put(out, text, plain);
        text += plain;
        if (*text) {
            putc('\\', out);
            putc(*text++, out);
        }
    }
}
