/* One record of the event stream as a line that a person can write. Room: tools. Context: any.
 *
 * One rule: what is written is what is meant: absolute times, addresses and ids; the differences
 * are the encoder's business. Formatting what was parsed gives the same line, and back.
 *
 *   line  = KIND { " " name "=" value }       the names that a kind has: text.c, in one table
 *   value = decimal or 0x number, a word of the field's own list, bytes as hexadecimal, or text in
 *           "" with \" \\ and \xNN
 *
 * A field that is left out has its default: 0, or what the table says. */
#ifndef MEMLOG_TOOLS_DEV_STREAM_TEXT_H
#define MEMLOG_TOOLS_DEV_STREAM_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/event.h"
#include "ipc/wire/ml_status.h"

enum {
    /* A path of ML_PATH_MAX_BYTES with every byte escaped, and the other fields. */
    ML_STREAM_LINE_MAX_BYTES = 4 * ML_PATH_MAX_BYTES + 1024
};

/* What pointers in a parsed event point to. */
struct ml_stream_scratch {
    uint8_t bytes[ML_STREAM_LINE_MAX_BYTES];
    size_t used_bytes;
    char error[160]; /* for people, when parsing fails */
};

/* Parse a line without its newline. Errors: ML_PEER_FORM, with scratch->error. */
ML_NODISCARD enum ml_status ml_stream_text_parse(
    const char *line, struct ml_stream_scratch *scratch, struct ml_event *out_event
);

/* Write the line, NUL-terminated, without newline. `line` has ML_STREAM_LINE_MAX_BYTES. */
void ml_stream_text_format(const struct ml_event *event, char *line);

/* Add bytes in hexadecimal to the scratch; blanks may stand between them. False: they are no pairs
 * of digits, or too many. */
int ml_stream_text_bytes(const char *text, size_t length, struct ml_stream_scratch *scratch);

/* One "name=value" of a directive. False if `line` has no such name; *out_value is then as before.
 */
int ml_stream_text_number(const char *line, const char *name, uint64_t *out_value);

#endif
