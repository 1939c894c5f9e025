#include "tools/analyzer/formats/sender.h"

#include <stddef.h>

const struct ml_sender_name ml_sender_names[ML_SENDER_WORDS] = {
    [ML_SENDER_HOST] = {"host", "host.name"},
    [ML_SENDER_VERSION] = {"program version", "service.version"},
    [ML_SENDER_REASON] = {"reason", "memlog.reason"},
    [ML_SENDER_TRIGGER] = {"trigger", "memlog.trigger"},
    [ML_SENDER_WEIGHT] = {"weight", "memlog.weight"},
    [ML_SENDER_PROMISED] = {"promised ppm", "memlog.promised_ppm"},
    [ML_SENDER_COST] = {"cost ppm", "memlog.cost_ppm"},
};

static struct ml_sender_value text_of(const char *text) {
    return (struct ml_sender_value){.text = text, .is_told = text && text[0] != '\0'};
}

static struct ml_sender_value number_of(uint64_t number, bool is_told) {
    return (struct ml_sender_value){.number = number, .is_told = is_told};
}

void ml_sender_values(
    const struct ml_profile *profile,
    const struct ml_sender *sender,
    struct ml_sender_value out_values[ML_SENDER_WORDS]
) {
    const uint32_t promised_ppm = ml_profile_promised_ppm(profile);
    const struct ml_profile_process *costliest = ml_profile_costliest(profile);

    for (size_t i = 0; i < ML_SENDER_WORDS; i++) {
        out_values[i] = number_of(0, false);
    }
    if (!sender) {
        return;
    }
    out_values[ML_SENDER_HOST] = text_of(sender->host);
    out_values[ML_SENDER_VERSION] = text_of(sender->version);
    out_values[ML_SENDER_REASON] = text_of(ml_profile_reason_name(profile->reason));
    out_values[ML_SENDER_TRIGGER] = text_of(ml_profile_trigger_name(profile->trigger.kind));
    out_values[ML_SENDER_WEIGHT] = number_of(sender->weight, sender->weight > 0);
    out_values[ML_SENDER_PROMISED] = number_of(promised_ppm, promised_ppm > 0);
    out_values[ML_SENDER_COST] =
        number_of(costliest ? ml_profile_cost_ppm(costliest) : 0, costliest != NULL);
}
