/* Keeps what the analyzer wants to find again, tools/analyzer/symbols/cache.h, in files of the
 * user's cache folder. Room: tools. Context: the main thread, before and inside the sandbox.
 *
 * One rule: whoever is inside the sandbox writes nothing but its output, so a process of its own
 * (tools/analyzer/helpers/helper.h) writes here: files of that one folder, named by build id, and
 * it reads none of them. A file is whole or not there; together they take ML_CACHE_MAX_BYTES at
 * most, then the oldest go.
 *
 * The folder: MEMLOG_SYMBOL_CACHE, or $XDG_CACHE_HOME/memlog, or ~/.cache/memlog; "off": none. */
#ifndef MEMLOG_TOOLS_ANALYZER_HELPERS_CACHE_KEEPER_H
#define MEMLOG_TOOLS_ANALYZER_HELPERS_CACHE_KEEPER_H

#include <stdbool.h>
#include <stddef.h>

/* A few thousand libraries' names; a quarter goes when it is full. */
enum { ML_CACHE_MAX_BYTES = 256 * 1024 * 1024 };

/* Start it. The folder, which need not be there yet; NULL: nothing is kept. */
const char *ml_cache_keeper_start(void);

/* What it does there (tools/helper.h), for whoever has taken over the analyzer, too. */
void ml_cache_keeper_serve(int questions_fd, int answers_fd, int own_fd);

/* Keep the bytes as FOLDER/HEX.names, over what was there. False: they are not. */
bool ml_cache_keeper_keep(const char *build_id_hex, const void *bytes, size_t count_bytes);

#endif
