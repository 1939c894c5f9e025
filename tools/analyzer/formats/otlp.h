/* A dump as OpenTelemetry's profiles, as OTLP/HTTP carries them: an ExportProfilesServiceRequest,
 * gzipped. Room: tools. Context: one thread.
 *
 * One rule: one profile for each figure, all over one dictionary, whose tables begin with an empty
 * entry. The sums of the samples are the report's.
 *
 * Source: opentelemetry-proto 1.9, profiles/v1development. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_OTLP_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_OTLP_H

#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/formats/sender.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stacks.h"

/* Write alloc_objects, alloc_space, inuse_objects and inuse_space of all processes; and, where it
 * was read, private_memory, whose samples have an attribute memlog.component and no stack. `guid`:
 * 32 hex digits; the profiles' ids are made of it. `sender`: what the resource's attributes say
 * beside program and build; NULL: nothing. Errors: ML_ENV_MEMORY; ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status ml_otlp_write(
    const struct ml_stacks *stacks, const char *guid, const struct ml_sender *sender, FILE *out
);

#endif
