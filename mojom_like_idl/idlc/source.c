#include "mojom_like_idl/idlc/source.h"

#include <stdarg.h>
#include <stdio.h>

void source_error(struct source *source, struct place place, const char *format, ...) {
    if (source->failed) {
        return;
    }
    char message[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    source->failed = true;
    source->error = pool_print(
        source->pool, "%s:%d:%d: error: %s", source->name, place.line, place.column, message
    );
}
