#include "tools/analyzer/formats/chrome_metadata.h"

enum { VERSION = 1 };

static void put_if_known(struct ml_json *json, const char *name, const char *text) {
    if (text && text[0] != '\0') {
        ml_json_string_member(json, name, text);
    }
}

/* By --overhead. */
static void put_cost(struct ml_json *json, const struct ml_profile *profile) {
    const struct ml_profile_process *costliest = ml_profile_costliest(profile);

    if (ml_profile_promised_ppm(profile) != 0) {
        ml_json_number_member(json, "promised_ppm", ml_profile_promised_ppm(profile));
    }
    if (costliest) {
        ml_json_number_member(json, "cost_ppm", ml_profile_cost_ppm(costliest));
    }
}

static void put_figures(struct ml_json *json, const struct ml_profile *profile) {
    ml_json_number_member(json, "sampling_bytes", ml_profile_sampling_bytes(profile));
    put_cost(json, profile);
    ml_json_number_member(json, "live_bytes", profile->running.bytes);
    ml_json_number_member(json, "left_bytes", profile->left.bytes);
    ml_json_number_member(json, "peak_bytes", profile->tree.peak_bytes);
    ml_json_number_member(json, "total_bytes", profile->tree.total_bytes);
    ml_json_number_member(json, "processes", ml_profile_processes(profile));
}

static void put_report(
    struct ml_json *json, const struct ml_profile *profile, const struct ml_chrome_report *report
) {
    ml_json_open_member(json, "memlog", '{');
    ml_json_number_member(json, "version", VERSION);
    ml_json_string_member(json, "guid", report->guid);
    put_if_known(json, "program", profile->program.bytes);
    put_if_known(json, "build_id", report->build_id);
    put_if_known(json, "host", report->sender->host);
    put_if_known(json, "program_version", report->sender->version);
    ml_json_number_member(json, "time_ns", profile->now.realtime_ns);
    put_if_known(json, "reason", ml_profile_reason_name(profile->reason));
    put_if_known(json, "trigger", ml_profile_trigger_name(profile->trigger.kind));
    if (report->sender->weight > 0) {
        ml_json_number_member(json, "weight", report->sender->weight);
    }
    ml_json_bool_member(json, "complete", ml_profile_is_complete(profile));
    ml_json_bool_member(json, "covered", ml_profile_is_covered(profile));
    put_figures(json, profile);
    ml_json_close(json, '}');
}

/* Without these members catapult's symbolize_trace reads no trace. It looks for Chrome's version,
 * for "linux" in the system's name and for the processor's. */
void ml_chrome_metadata(
    struct ml_json *json, const struct ml_profile *profile, const struct ml_chrome_report *report
) {
    ml_json_open_member(json, "metadata", '{');
    ml_json_string_member(json, "product-version", "memlog");
    ml_json_string_member(json, "os-name", "Linux");
#if defined(__x86_64__)
    ml_json_string_member(json, "os-arch", "x86_64");
#elif defined(__aarch64__)
    ml_json_string_member(json, "os-arch", "aarch64");
#else
#    error "name the processor as uname -m does"
#endif
    ml_json_string_member(json, "user-agent", "memlog");
    if (report != NULL) {
        put_report(json, profile, report);
    }
    ml_json_close(json, '}');
}
