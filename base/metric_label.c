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

void ml_metric_head(FILE *out, const char *name, bool is_counter, bool is_open, const char *help) {
    const char *suffix = is_counter && !is_open ? "_total" : "";
    (void)fprintf(out, "# HELP %s%s %s\n", name, suffix, help);
    (void)fprintf(out, "# TYPE %s%s %s\n", name, suffix, is_counter ? "counter" : "gauge");
}
