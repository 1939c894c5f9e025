/* The body of an upload, byte for byte: what memlog sends is what this wrote. Room: tools. Context:
 * one thread.
 *
 * One rule: a body that is larger than it may be is pruned harder until it fits; its sums stay.
 * With more room never less of the live bytes is told by stack, until 92 % are; from there
 * on what more room brings is longer stacks, and at last more of them. */
#ifndef MEMLOG_TOOLS_ANALYZER_UPLOAD_BODY_H
#define MEMLOG_TOOLS_ANALYZER_UPLOAD_BODY_H

#include <stdint.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stacks.h"

enum ml_upload_form {
    ML_UPLOAD_REPORT = 0, /* multipart/form-data as Chromium's slow reports, trace.json.gz in it */
    ML_UPLOAD_TRACE,      /* that trace.json.gz alone: folders, S3 */
    ML_UPLOAD_PPROF,      /* gzipped profile.proto */
    ML_UPLOAD_PYROSCOPE,  /* JSON for Pyroscope's push */
    ML_UPLOAD_PYROSCOPE_INGEST, /* multipart for its /ingest */
    ML_UPLOAD_OTLP,             /* ExportProfilesServiceRequest, gzipped */
    ML_UPLOAD_FORM_COUNT
};

/* "report", "trace", ... */
extern const char *const ml_upload_form_names[ML_UPLOAD_FORM_COUNT + 1];

struct ml_upload {
    struct ml_stacks *stacks; /* redacted (tools/analyzer/upload/redact.h), as their profile is */
    enum ml_upload_form form;
    uint64_t max_bytes;   /* of the body, compressed */
    bool keeps_small;     /* begin without pruning */
    bool others_as_one;   /* set where it is made to fit: tools/analyzer/formats/chrome_trace.h */
    const char *guid;     /* 32 hex digits: the same at every try */
    const char *boundary; /* of multipart forms */
};

/* How it was made to fit. */
struct ml_upload_cut {
    /* Folded were stacks that hold less than this for each byte of body, ... */
    double least_worth;   /* 0: none */
    uint64_t below_bytes; /* ... unless they hold this much; 0: all of those */
    uint32_t frames;      /* of each stack that were left; 0: all */
    size_t others;        /* processes that became one; 0: none */
    uint64_t body_bytes;
    uint64_t live_bytes,
        attributed_bytes;    /* of all processes; in stacks that were not folded, ... */
    uint64_t function_bytes; /* ... told of a function alone, ... */
    uint64_t named_bytes;    /* ... of both, with the name of who asked
                                (tools/analyzer/stacks/attribution.h) */
    size_t stacks_before, stacks_after;
};

/* Write it to `out`. The stacks are of no use then. Errors: ML_ENV_MEMORY, ML_ENV_SYSTEM;
 * ML_PEER_LIMIT: even with one function alone it does not fit, *out_cut says how large it is. */
ML_NODISCARD enum ml_status
ml_upload_write(const struct ml_upload *upload, FILE *out, struct ml_upload_cut *out_cut);

#endif
