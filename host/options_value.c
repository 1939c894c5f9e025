/* What a value of an option may be, wherever several options take the same; and the signals' names.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/size.h"
#include "base/suggest.h"
#include "host/options_internal.h"

/* Thirty dumps from 1 MiB to 1 GiB: enough to see who came when, too few to fill a disk. */
enum { PEAK_STEP_PERCENT = 25, PEAK_STEP_PERCENT_MAX = 1000, PEAK_STEP_DIGITS = 4 };

/* With less not even one small process's tables fit. */
enum { SERVICE_MEMORY_MIN_BYTES = 1 << 20 }; /* and of one client's part of it */

int ml_value_choice(
    const char *option,
    const char *value,
    const char *const *choices,
    size_t choices_count,
    struct ml_complaint *complaint
) {
    for (size_t i = 0; i < choices_count; i++) {
        if (strcmp(value, choices[i]) == 0) {
            return (int)i;
        }
    }
    const char *near = ml_suggest(value, choices, choices_count);
    ml_complain(
        complaint,
        "%s=%s: no such value; %s '%s'%s",
        option,
        value,
        near != NULL ? "did you mean" : "the first of its values is",
        near != NULL ? near : choices[0],
        near != NULL ? "?" : ""
    );
    return -1;
}

enum ml_status ml_value_count(
    const char *option,
    const char *value,
    uint64_t max,
    uint32_t *out_count,
    struct ml_complaint *complaint
) {
    uint64_t count = 0;
    enum ml_status status = ml_count_read(value, max, &count) ? ML_OK : ML_PEER_FORM;
    if (status == ML_OK && count == 0) {
        status = ML_PEER_RANGE;
    }
    if (status != ML_OK) {
        ml_complain(
            complaint, "%s=%s: a whole number from 1 to %" PRIu64 " is wanted", option, value, max
        );
        return status;
    }
    *out_count = (uint32_t)count;
    return ML_OK;
}

enum ml_status ml_value_memory(
    const char *option, const char *value, uint64_t *out_bytes, struct ml_complaint *complaint
) {
    uint64_t bytes = 0;
    enum ml_status status = ml_size_read(value, &bytes) ? ML_OK : ML_PEER_FORM;
    if (status == ML_OK && bytes < SERVICE_MEMORY_MIN_BYTES) {
        status = ML_PEER_RANGE;
    }
    if (status != ML_OK) {
        ml_complain(complaint, "%s=%s: a size of at least 1M is wanted", option, value);
        return status;
    }
    *out_bytes = bytes;
    return ML_OK;
}

enum ml_status ml_value_pattern(
    struct ml_patterns *patterns,
    const char *option,
    const char *value,
    struct ml_complaint *complaint
) {
    struct ml_complaint why = {.text = ""};
    enum ml_status status = ml_patterns_add(patterns, value, 0, &why);
    if (status != ML_OK) {
        ml_complain(complaint, "%s: %s", option, why.text);
    }
    return status;
}

enum ml_status ml_value_peak_step(
    const char *option,
    const char *value,
    struct ml_peak_step *out_step,
    struct ml_complaint *complaint
) {
    struct ml_peak_step step = {.is_set = true, .percent = PEAK_STEP_PERCENT};
    enum ml_status status = ML_OK;
    const size_t count = value != NULL ? strlen(value) : 0;
    if (count > 0 && value[count - 1] == '%') {
        char number[PEAK_STEP_DIGITS + 1];
        uint64_t percent = 0;
        (void)snprintf(number, sizeof(number), "%.*s", (int)count - 1, value);
        status =
            count - 1 < sizeof(number) && ml_count_read(number, PEAK_STEP_PERCENT_MAX, &percent)
                ? ML_OK
                : ML_PEER_RANGE;
        step.percent = (uint32_t)percent;
    } else if (value != NULL) {
        status = ml_size_read(value, &step.bytes) ? ML_OK : ML_PEER_FORM;
        step.percent = 0;
    }
    if (status != ML_OK || (step.percent == 0 && step.bytes == 0)) {
        ml_complain(
            complaint,
            "%s=%s: by how much the peak has risen, such as 25%% or 50M, is wanted",
            option,
            value != NULL ? value : ""
        );
        return ML_PEER_RANGE;
    }
    *out_step = step;
    return ML_OK;
}

int ml_signal_parse(const char *name) {
    uint64_t number = 0;
    if (ml_count_read(name, (uint64_t)SIGRTMAX, &number)) {
        return (int)number;
    }
    if (strncasecmp(name, "SIG", 3) == 0) {
        name += 3;
    }
    for (int i = 1; i < SIGRTMIN; i++) {
        const char *known = sigabbrev_np(i);
        if (known != NULL && strcasecmp(name, known) == 0) {
            return i;
        }
    }
    return 0;
}
