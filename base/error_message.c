#include "base/error_message.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

void ml_error_set(struct ml_error_message *error, const char *format, ...) {
    if (error == NULL || error->text[0] != '\0') {
        return;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
}
