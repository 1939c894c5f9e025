/* Addresses that are the same on every machine. Room: tools. Context: one thread.
 *
 * One rule: no address of a process stays. A module lies where its place in the list of files says,
 * so a frame is its module, build id and offset, in each form that has addresses at all. Two
 * uploads of one program then have their stacks in common.
 *
 * Shape: module number N (from 0) has its ELF address 0 at (N + 1) << ML_RELOCATE_BITS. Readers of
 *        JSON keep 53 bits of a number exactly: they bound the modules. */
#ifndef MEMLOG_TOOLS_ANALYZER_UPLOAD_RELOCATE_H
#define MEMLOG_TOOLS_ANALYZER_UPLOAD_RELOCATE_H

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stacks.h"

enum { ML_RELOCATE_BITS = 36, ML_RELOCATE_MODULES = 1 << (53 - ML_RELOCATE_BITS) };

/* Move the modules of all processes, and the stacks' files, which have their names already. Code
 * that lies in no file has no address any more: its frames are "[code in no file]". Modules beyond
 * ML_RELOCATE_MODULES share the last place. */
void ml_relocate(struct ml_profile *profile, struct ml_stacks *stacks);

#endif
