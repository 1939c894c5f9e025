/* The golden messages: named values of the example contract and of our own, and their bytes as
 * text. Room: tests. */
#ifndef MEMLOG_TESTS_MOJOM_LIKE_IDL_SAMPLES_H
#define MEMLOG_TESTS_MOJOM_LIKE_IDL_SAMPLES_H

#include "ipc/wire/message.h"
#include "mojom_like_idl/idlc/pool.h"

struct sample {
    const char *name;
    const struct ml_message_type *type;
    const void *value;
};

extern const struct sample samples[];
extern const int sample_count;

#define SAMPLES_PATH "tests/mojom_like_idl/golden/messages.txt"

/* All samples as messages.txt has them: a line with the name, then the body in hexadecimal. */
char *samples_text(struct pool *pool);

#endif
