/* A nanopb stream, or a file, that goes gzipped into a file. Room: tools. Context: one thread.
 *
 * One rule: the output is complete only after _finish succeeded. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_GZIP_STREAM_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_GZIP_STREAM_H

#include <pb_encode.h>
#include <stdio.h>
#include <zlib.h>

#include "ipc/wire/ml_status.h"

enum { ML_GZIP_BUFFER_BYTES = 64 * 1024 };

struct ml_gzip_stream {
    z_stream deflate;
    FILE *out;
    unsigned char in_bytes[ML_GZIP_BUFFER_BYTES]; /* gathered: nanopb writes byte by byte */
    size_t in_count;
    unsigned char out_bytes[ML_GZIP_BUFFER_BYTES];
};

/* Errors: ML_ENV_MEMORY; then nothing is to be finished. */
ML_NODISCARD enum ml_status ml_gzip_stream_init(struct ml_gzip_stream *gzip, FILE *out);

/* The stream to encode into. */
pb_ostream_t ml_gzip_stream_over(struct ml_gzip_stream *gzip);

/* The same as a FILE, for printf. NULL without memory. Owner: the caller's, to be closed before
 * _finish. */
FILE *ml_gzip_stream_file(struct ml_gzip_stream *gzip);

/* Write the rest and free everything. Errors: ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status ml_gzip_stream_finish(struct ml_gzip_stream *gzip);

#endif
