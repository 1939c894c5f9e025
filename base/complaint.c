#include "base/complaint.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

void ml_complain(struct ml_complaint *complaint, const char *format, ...) {
    if (complaint == NULL || complaint->text[0] != '\0') {
        return;
    }
    va_list args;
    va_start(args, format);
    (void)vsnprintf(complaint->text, sizeof(complaint->text), format, args);
    va_end(args);
}
