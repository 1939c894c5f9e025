/* A dump as gperftools' text heap profile: `memlog convert --to=heap`. For google-pprof and jeprof;
 * pprof reads it, too. Room: tools. Context: one thread.
 *
 * One rule: the sums of its lines are the report's: live blocks and bytes, in brackets all ever
 * allocated.
 *
 * Shape:
 *   heap profile:  BLOCKS:  BYTES [ BLOCKS:  BYTES] @ heapprofile
 *     1:  4096 [ 3:  12288] @ 0xINNERMOST ... 0xOUTERMOST
 *   MAPPED_LIBRARIES:
 *   START-END r-xp OFFSET 00:00 0 PATH
 *
 * Its addresses are return addresses. One process's are its own; those of a tree are made up: each
 * file stands once, as if all processes had mapped it at the same place. Frames that are no code (a
 * thread's name, `<other>`) are left out. It holds no names: readers look them up in the files. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_HEAP_TEXT_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_HEAP_TEXT_H

#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stacks.h"

/* Write the tree's stacks. Errors: ML_ENV_MEMORY. Errors of the file stay with the file. */
ML_NODISCARD enum ml_status ml_heap_text_write(const struct ml_stacks *stacks, FILE *out);

#endif
