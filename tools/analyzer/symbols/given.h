/* The functions of one ELF file that somebody gave, by its symbol tables. Room: tools. Context: one
 * thread; the file may be anybody's.
 *
 * One rule: it needs no file beside the one that is open, so a sandbox without files has it. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_GIVEN_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_GIVEN_H

#include <stddef.h>
#include <stdint.h>

enum { ML_GIVEN_BUILD_ID_HEX_BYTES = 2 * 64 + 1 };

struct ml_symbols_given;

/* NULL: it is no ELF file with functions. Owner of `take_fd`: it, from the call on. */
struct ml_symbols_given *ml_symbols_given_open(int take_fd);
void ml_symbols_given_free(struct ml_symbols_given *take_given);

/* In hex; "": it has none. */
const char *ml_symbols_given_build_id(const struct ml_symbols_given *given);

/* The function at an ELF address, as people write it; "": none. It lives as long as the file. */
const char *ml_symbols_given_name(struct ml_symbols_given *given, uint64_t address);

#endif
