#include "tools/analyzer/sandbox/confine.h"

#include "tools/analyzer/sandbox/confine_filter.h"

void ml_confine(const char *output_path, const char *second_path) {
    ml_confine_but(output_path, second_path, 0);
}

void ml_confine_closed(void) {
    ml_confine_closed_but(0);
}
