/* A folder for a fuzzer whose decoder opens files by their names. Room: tests.
 *
 * One rule: it goes with the fuzzer, however that ends: libFuzzer ends a program without its exit
 * handlers, and a breach by abort(). */
#ifndef MEMLOG_TESTS_FUZZ_FOLDER_H
#define MEMLOG_TESTS_FUZZ_FOLDER_H

#include <stddef.h>
#include <stdint.h>

/* A new one, in memory; the text stays as it is. Once in a process. */
const char *fuzz_folder(void);

/* Write the file of that path, with that in it. */
void fuzz_write(const char *path, const uint8_t *bytes, size_t count_bytes);

#endif
