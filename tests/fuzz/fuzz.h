/* What each fuzzer here defines. Room: tests.
 *
 * Built as they are, tests/fuzz/replay.c feeds them their seeds (tests/fuzz/seeds/NAME.txt) and a
 * fixed number of mutants, as part of the unit tests. Built with `fuzz = true` (and clang), they
 * are libFuzzer programs for long runs: tools/dev/fuzz mojom_like_idl_codec 600. A case that it
 * finds becomes a seed with a name that says what it broke. */
#ifndef MEMLOG_TESTS_FUZZ_FUZZ_H
#define MEMLOG_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A promise of what is fuzzed: when it is broken, it is named and the fuzzer aborts. */
#define REQUIRE(promise)                                                                           \
    do {                                                                                           \
        if (!(promise)) {                                                                          \
            (void)fprintf(stderr, "%s:%d: not kept: %s\n", __FILE__, __LINE__, #promise);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Handle one input; abort when a promise is broken. Always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes);

#endif
