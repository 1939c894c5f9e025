/* What an upload says of its report beside figures and stacks, in forms that have no member for it:
 * pprof's comments, OpenTelemetry's resource. Room: tools. Context: one thread.
 *
 * One rule: one list of names, for who writes them and who reads them. What is not known is left
 * out.
 *
 * Shape: pprof: a comment "memlog: NOTE VALUE", numbers in decimal. OpenTelemetry: an attribute KEY
 *        of the resource, numbers as such. */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_SENDER_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_SENDER_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/analyzer/model/profile.h"

#define ML_SENDER_NOTE "memlog: "

/* Who sends it, by the user's word. Strings are borrowed; NULL or "": not told. */
struct ml_sender {
    const char *host;
    const char *version; /* of the program */
    uint64_t weight;     /* of a control dump: one look in so many makes one; 0: not known */
};

enum ml_sender_word {
    ML_SENDER_HOST,
    ML_SENDER_VERSION,
    ML_SENDER_REASON,
    ML_SENDER_TRIGGER,
    ML_SENDER_WEIGHT,
    ML_SENDER_PROMISED, /* --overhead, in millionths of a process's time */
    ML_SENDER_COST,     /* of the process that memlog cost most, likewise */
    ML_SENDER_WORDS
};

extern const struct ml_sender_name { const char *note, *key; } ml_sender_names[ML_SENDER_WORDS];

struct ml_sender_value {
    const char *text; /* NULL: a number, or not told */
    uint64_t number;
    bool is_told;
};

/* `sender` NULL: it is no upload, and nothing is told. */
void ml_sender_values(
    const struct ml_profile *profile,
    const struct ml_sender *sender,
    struct ml_sender_value out_values[ML_SENDER_WORDS]
);

#endif
