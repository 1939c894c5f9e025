/* Reads a dump file into a profile. Room: tools. Context: one thread; the bytes are untrusted.
 *
 * One rule: everything whole is kept. A cut or damaged file gives a profile with all before the
 * damage, even if that is nothing (`truncated`, `damaged`, and for each process `partial` say so).
 * Only a file that is no dump is an error. */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_READER_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_READER_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"

/* Packets are held in memory one at a time; larger ones than this are not ours (the writer's limit
 * is 1 MiB, ModuleSymbols and other writers' packets may be larger). */
enum { ML_TRACE_PACKET_MAX_BYTES = 64 << 20 };

/* Read everything from `file` into *out_profile, which is all zero before. Of several dumps one
 * after another (`cat A B`) it is the `number`th, from 1; 0: the last.
 *
 * Errors: ML_PEER_FORM: no trace; ML_ENV_MISSING: a trace, but without packets of memlog's (or cut
 *         before the first), or not so many dumps; ML_PEER_VERSION: written by a newer memlog;
 *         ML_ENV_SYSTEM: read error; ML_ENV_MEMORY. Free *out_profile after an error too. */
ML_NODISCARD enum ml_status
ml_trace_read(FILE *file, uint32_t number, struct ml_profile *out_profile);

/* Why a read failed and what to do, for a person who knows the file's name. */
const char *ml_trace_read_advice(enum ml_status status);

#endif
