/* Private to the options: what one option is. Room: host. Context: any; constant. */
#ifndef MEMLOG_HOST_OPTIONS_INTERNAL_H
#define MEMLOG_HOST_OPTIONS_INTERNAL_H

#include <stddef.h>

#include "host/options.h"

enum ml_option_value { ML_VALUE_NONE, ML_VALUE_REQUIRED, ML_VALUE_OPTIONAL };

/* How an option is written, whether it has a value, what it does. `apply` is NULL for what is
 * promised and this version does not have. */
struct ml_option {
    const char *name;
    enum ml_option_value value;
    enum ml_status (*apply)(struct ml_options *options, const char *value, struct ml_complaint *);
};

/* The table of all options of `memlog run`, ended by a NULL name. */
extern const struct ml_option ml_run_options[];

#endif
