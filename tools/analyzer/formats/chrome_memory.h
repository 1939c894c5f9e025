/* A process's mappings and what its memory is made of as in Chrome's traces: `process_mmaps` and
 * `allocators`. Room: tools. Context: one thread.
 *
 * One rule: a reader that adds up the regions has the kernel's figures, and so has one that adds up
 * the components. Both are of one reading.
 *
 * Source: Chromium's memory_instrumentation, tracing_observer; catapult's trace_event_importer. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_CHROME_MEMORY_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_CHROME_MEMORY_H

#include <stdint.h>

#include "base/json_writer.h"
#include "tools/analyzer/model/profile.h"

/* Members whose value is a number in hex, as the viewer reads them; a scalar is an allocator's. */
void ml_chrome_hex_member(struct ml_json *json, const char *name, uint64_t value);
void ml_chrome_scalar(struct ml_json *json, const char *name, const char *units, uint64_t value);

/* Our own members, for tools/analyzer/formats/chrome_symbolize.h: the module's build id and load
 * bias. */
void ml_chrome_identity(struct ml_json *json, const struct ml_profile_module *module);

/* A module whose own mappings are not known. */
void ml_chrome_module(
    struct ml_json *json,
    const struct ml_profile_process *process,
    const struct ml_profile_module *module
);

/* Elements of `vm_regions`: all mappings with their resident bytes, then the modules in none of
 * them. */
void ml_chrome_regions(struct ml_json *json, const struct ml_profile_process *process);

/* Members of `allocators`: "components", and below it one with the size of each component. Nothing
 * where the mappings are not known. */
void ml_chrome_components(
    struct ml_json *json, const struct ml_profile_process *process, uint64_t pid
);

#endif
