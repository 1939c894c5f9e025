/* A frame table: .eh_frame_hdr at the input's second byte, everything else behind it. */
#include <stdlib.h>
#include <string.h>

#include "client/unwind/cfi.h"
#include "tests/fuzz/fuzz.h"

enum { CODE_AT = 0x10000 }; /* as in tests/client/unwind/cfi_test.c, from where the seeds come */

static uint64_t stack[8];

static bool load(void *context, uintptr_t address, uint64_t *out_word) {
    (void)context;
    if (address - (uintptr_t)stack >= sizeof stack || address % sizeof stack[0] != 0) {
        return false;
    }
    *out_word = *(const uint64_t *)address;
    return true;
}

static void evaluate(const struct ml_cfi_table *table, const struct ml_cfi_rule *rule) {
    uint64_t registers[ML_ARCH_CFI_REGISTERS] = {
        [ML_ARCH_FP] = (uintptr_t)stack + 8, [ML_ARCH_SP] = (uintptr_t)stack};
    struct ml_cfi_machine machine = {
        .registers = registers,
        .known = 1U << ML_ARCH_FP | 1U << ML_ARCH_SP,
        .load = load,
        .limit = table->segment_hi};
    uint64_t value = 0;
    if ((rule->kind == ML_CFI_EXPRESSION || rule->kind == ML_CFI_VAL_EXPRESSION) &&
        ml_cfi_evaluate(&machine, rule->value, NULL, &value)) {
        stack[7] = value;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct ml_cfi_scratch scratch;
    if (count_bytes < 2) {
        return 0;
    }
    /* Of its own size, so that a sanitizer sees the first byte read behind it. */
    size_t bytes = count_bytes - 1;
    uint8_t *copy = malloc(bytes);
    memcpy(copy, data + 1, bytes);
    uintptr_t at = (uintptr_t)copy;
    struct ml_cfi_table table = {.header = at, .segment_lo = at, .segment_hi = at + bytes};
    uintptr_t pc = at + CODE_AT + data[0];
    if (ml_cfi_find_row(&table, pc, &scratch)) {
        evaluate(&table, &scratch.row.cfa);
        for (uint32_t i = 0; i < ML_ARCH_CFI_REGISTERS; i++) {
            evaluate(&table, &scratch.row.registers[i]);
        }
    }
    (void)ml_cfi_starts_function(&table, pc);
    free(copy);
    return 0;
}
