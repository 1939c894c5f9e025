/* Stores the analyzer's symbol cache, tools/analyzer/symbols/cache.h, in files of the user's cache
 * folder. Room: tools. Context: the main thread, before and inside the sandbox.
 *
 * One rule: the sandboxed analyzer writes only its output, so a separate process
 * (tools/analyzer/helpers/helper.h) writes here. It writes files of that one folder, named by build
 * id, and reads none. A file is whole or absent; together they take at most ML_CACHE_MAX_BYTES,
 * then the oldest are removed.
 *
 * The folder: MEMLOG_SYMBOL_CACHE, or $XDG_CACHE_HOME/memlog, or ~/.cache/memlog; "off": none. */
#ifndef MEMLOG_TOOLS_ANALYZER_HELPERS_CACHE_KEEPER_H
#define MEMLOG_TOOLS_ANALYZER_HELPERS_CACHE_KEEPER_H

#include <stdbool.h>
#include <stddef.h>

/* Names of a few thousand libraries; when it is full a quarter is freed. */
enum { ML_CACHE_MAX_BYTES = 256 * 1024 * 1024 };

/* Start it. Returns the folder, which may not exist yet; NULL: nothing is kept. */
const char *ml_cache_keeper_start(void);

/* The helper's work. Its input is hostile if the analyzer was taken over. */
void ml_cache_keeper_serve(int questions_fd, int answers_fd, int own_fd);

/* Store the bytes as FOLDER/HEX.names, replacing an older file. False: not stored. */
bool ml_cache_keeper_keep(const char *build_id_hex, const void *bytes, size_t count_bytes);

#endif
