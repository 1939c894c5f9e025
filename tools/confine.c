#include "tools/confine.h"

#include "tools/confine_walls.h"

void ml_confine(const char *output_path) {
    ml_confine_but(output_path, 0);
}
