/* A file that goes gzipped into another, and nanopb's stream into a file. Room: tools. Context: one
 * thread.
 *
 * One rule: the output is complete only after ml_gzip_close() succeeded. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_GZIP_STREAM_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_GZIP_STREAM_H

#include <pb_encode.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"

/* What is written to it goes into `out`, which is borrowed. NULL: no memory. */
FILE *ml_gzip_open(FILE *out);

/* Write the rest and free everything. Returns `status`, or ML_ENV_SYSTEM for an error of the file's
 * if that is ML_OK. */
ML_NODISCARD enum ml_status ml_gzip_close(FILE *take_gzip, enum ml_status status);

/* A stream to encode into that writes to the file. */
pb_ostream_t ml_pb_stream_into(FILE *out);

#endif
