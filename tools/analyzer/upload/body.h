/* Writes the body of an upload. memlog sends it byte for byte. Room: tools. Context: one thread.
 *
 * One rule: a body that is too large is pruned harder until it fits; its sums stay. A larger limit
 * never leaves fewer live bytes with their stack, until 92 % have one. Beyond that a larger limit
 * gives longer stacks first, then more of them. */
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
    struct ml_stacks *stacks; /* redacted with their profile (tools/analyzer/upload/redact.h) */
    enum ml_upload_form form;
    uint64_t max_bytes;   /* of the body, compressed */
    bool keeps_small;     /* begin without pruning */
    uint32_t prune;       /* the body is so many times smaller than a whole one; 0: any size */
    bool others_as_one;   /* set while it is made to fit; tools/analyzer/formats/chrome_trace.h */
    const char *guid;     /* 32 hex digits; a retry has the same */
    const char *host;     /* that sends it; "" or NULL: not told */
    const char *version;  /* of the program; likewise */
    uint32_t weight;      /* of a control dump: one look in so many makes one; 0: not known */
    const char *boundary; /* of multipart forms */
};

/* How it was made to fit. */
struct ml_upload_cut {
    /* Stacks are folded that hold less than this for each byte of body, ... */
    double least_worth;   /* 0: none */
    uint64_t below_bytes; /* ... and less than this; 0: all of them */
    uint32_t frames;      /* that each stack keeps; 0: all */
    size_t others;        /* processes that are merged into one; 0: none */
    uint64_t body_bytes;
    uint64_t whole_bytes; /* of a body without pruning; 0: not known */
    uint64_t max_bytes;   /* that the body might have */
    uint64_t live_bytes,
        attributed_bytes;    /* of all processes; in stacks that were not folded, ... */
    uint64_t function_bytes; /* ... told of a function alone, ... */
    uint64_t named_bytes;    /* ... of both, with the name of who asked
                                (tools/analyzer/stacks/attribution.h) */
    size_t stacks_before, stacks_after;
};

/* Write the body to `out`. The stacks are only good for _fini then. Errors: ML_ENV_MEMORY,
 * ML_ENV_SYSTEM; ML_PEER_LIMIT: even one function does not fit, *out_cut has the body's size. */
ML_NODISCARD enum ml_status
ml_upload_write(const struct ml_upload *upload, FILE *out, struct ml_upload_cut *out_cut);

#endif
