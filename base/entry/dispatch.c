#include "base/entry/dispatch.h"

#include <stdbool.h>
#include <string.h>

/* mov DISTANCE(%rip),%REGISTER */
enum { PREFIX_BYTES = 3, LOAD_BYTES = 7 };

/* Where it reads, if a load of 64 bits is there. */
static bool is_load(const uint8_t code[LOAD_BYTES], uint64_t address, uint64_t *out_from) {
    enum { WIDE = 0x48, HIGH_REGISTER = 4, MOVE = 0x8b, MODE_MASK = 0xc7, RELATIVE = 0x05 };
    int32_t distance = 0;
    if (code[1] != MOVE || (code[0] & ~HIGH_REGISTER) != WIDE ||
        (code[2] & MODE_MASK) != RELATIVE) {
        return false;
    }
    memcpy(&distance, code + PREFIX_BYTES, sizeof(distance));
    *out_from = address + LOAD_BYTES + (uint64_t)(int64_t)distance;
    return true;
}

uint64_t ml_dispatch_variable(const uint8_t *code, size_t count_bytes, uint64_t address) {
    uint64_t from = 0;
    for (size_t at = 0; at + LOAD_BYTES <= count_bytes; at++) {
        if (is_load(code + at, address + at, &from)) {
            return from;
        }
    }
    return 0;
}

size_t ml_dispatch_loads(
    const uint8_t *code, size_t count_bytes, uint64_t address, uint64_t variable, size_t most
) {
    uint64_t from = 0;
    size_t count = 0;
    for (size_t at = 0; at + LOAD_BYTES <= count_bytes && count < most; at++) {
        count += is_load(code + at, address + at, &from) && from == variable;
    }
    return count;
}
