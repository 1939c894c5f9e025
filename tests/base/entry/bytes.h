/* Plans of code that is written down as bytes. Room: tests. */
#ifndef MEMLOG_TESTS_BASE_ENTRY_BYTES_H
#define MEMLOG_TESTS_BASE_ENTRY_BYTES_H

#include <stdlib.h>
#include <string.h>

#include "base/entry/plan.h"

enum { ADDRESS = 0x400000, STUB = 0x500000, TRAMPOLINE = 0x500040 };

#define CODE(literal) (literal), sizeof(literal) - 1

/* In memory of exactly its size, so that a sanitizer sees a step behind it. */
static inline enum ml_entry_refusal plan_at(
    const char *code, size_t bytes, uint64_t size, uint64_t address, struct ml_entry_plan *out_plan
) {
    uint8_t *copy = malloc(bytes == 0 ? 1 : bytes);
    memcpy(copy, code, bytes);
    const struct ml_entry_function function = {
        .code = copy, .code_bytes = bytes, .address = address, .size = size};
    const enum ml_entry_refusal refusal = ml_entry_plan(&function, STUB, TRAMPOLINE, out_plan);
    free(copy);
    return refusal;
}

/* The function is all of the code. */
static inline enum ml_entry_refusal plan_whole(const char *code, size_t bytes) {
    struct ml_entry_plan plan;
    return plan_at(code, bytes, bytes, ADDRESS, &plan);
}

static inline enum ml_entry_refusal plan_sized(const char *code, size_t bytes, uint64_t size) {
    struct ml_entry_plan plan;
    return plan_at(code, bytes, size, ADDRESS, &plan);
}

#define NOPS_11 "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90"
#define PROLOGUE "\x55\x48\x89\xe5\x53" /* push, mov, push: 5 bytes with two boundaries inside */

#endif
