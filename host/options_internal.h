/* Private to the options: what one option is, and what values several of them share. Room: host.
 * Context: any; constant.
 *
 * One rule: a value that is refused leaves what it was for as it was, and a complaint that names
 * option, value and what is wanted. */
#ifndef MEMLOG_HOST_OPTIONS_INTERNAL_H
#define MEMLOG_HOST_OPTIONS_INTERNAL_H

#include <stddef.h>

#include "host/options.h"

enum ml_option_value { ML_VALUE_NONE, ML_VALUE_REQUIRED, ML_VALUE_OPTIONAL };

/* How an option is written, whether it has a value, what it does. `apply` is NULL for what is
 * promised and this version does not have. */
struct ml_run_option {
    const char *name;
    enum ml_option_value value;
    enum ml_status (*apply)(struct ml_options *options, const char *value, struct ml_complaint *);
};

/* The table of all options of `memlog run`, ended by a NULL name. */
extern const struct ml_run_option ml_run_options[];

/* One of a few words: its place among them. -1: it is none of them. */
int ml_value_choice(
    const char *option,
    const char *value,
    const char *const *choices,
    size_t choices_count,
    struct ml_complaint *complaint
);

/* A whole number from 1 to `max`. Errors: ML_PEER_FORM, ML_PEER_RANGE. */
ML_NODISCARD enum ml_status ml_value_count(
    const char *option,
    const char *value,
    uint64_t max,
    uint32_t *out_count,
    struct ml_complaint *complaint
);

/* What the service may hold, or a client's part of it; in bytes, at least 1 MiB. Errors: as above.
 */
ML_NODISCARD enum ml_status ml_value_memory(
    const char *option, const char *value, uint64_t *out_bytes, struct ml_complaint *complaint
);

/* A regular expression more. Errors: ML_PEER_FORM: it is none; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_value_pattern(
    struct ml_patterns *patterns,
    const char *option,
    const char *value,
    struct ml_complaint *complaint
);

/* By how much a peak rises: "25%", "50M"; NULL: 25 %. Errors: ML_PEER_RANGE. */
ML_NODISCARD enum ml_status ml_value_peak_step(
    const char *option,
    const char *value,
    struct ml_peak_step *out_step,
    struct ml_complaint *complaint
);

#endif
