/* What each fuzzer here defines. Room: tests.
 *
 * Built as they are, tests/fuzz/replay.c feeds them their seeds (tests/fuzz/seeds/NAME.txt) and a
 * fixed number of mutants, as part of the unit tests. Built with `fuzz = true` (and clang), they
 * are libFuzzer programs for long runs: out-fuzz/mojom_like_idl_codec_fuzz CORPUS_FOLDER. */
#ifndef MEMLOG_TESTS_FUZZ_FUZZ_H
#define MEMLOG_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Handle one input; abort when a promise is broken. Always 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes);

#endif
