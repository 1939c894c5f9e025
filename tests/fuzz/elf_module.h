/* A hostile ELF file as libdwfl opens it. Room: tests. */
#ifndef MEMLOG_TESTS_FUZZ_ELF_MODULE_H
#define MEMLOG_TESTS_FUZZ_ELF_MODULE_H

#include <elfutils/libdwfl.h>

#include <stddef.h>
#include <stdint.h>

/* Let `visit` see the module of a file with these bytes, which has no other debug file. It is not
 * called where libdwfl finds no module in them. */
void fuzz_elf_module(const uint8_t *data, size_t count_bytes, void (*visit)(Dwfl_Module *module));

#endif
