#include "tools/analyzer/whole/grown.h"

#include <stdio.h>
#include <string.h>

#include "tools/analyzer/formats/units.h"

/* Components in the text; smaller ones than this part of what grew are left out. */
enum { SHOWN = 3, WORTH_A_WORD_PART = 20 };

bool ml_grown_of(const struct ml_profile_process *process, struct ml_grown *out) {
    struct ml_profile_process earlier = {0};
    struct ml_components before;
    struct ml_components now;

    *out = (struct ml_grown){0};
    if (!process->earlier || process->earlier->regions_count == 0 || process->regions_count == 0 ||
        process->earlier->heap_was_laid != process->heap_was_laid) {
        return false;
    }
    earlier = *process->earlier;
    earlier.modules = process->modules; /* borrowed: they say which mappings are .bss */
    earlier.modules_count = process->modules_count;
    ml_components_of(&earlier, &before);
    ml_components_of(process, &now);
    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        out->components[i] = (int64_t)(now.of[i].private - before.of[i].private);
    }
    out->all = (int64_t)(now.all.private - before.all.private);
    out->since_boottime_ns = earlier.regions_boottime_ns;
    return true;
}

static uint64_t size_of(int64_t bytes) {
    return bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
}

/* The component that grew most of those that were not told. ML_COMPONENTS: none grew. */
static enum ml_component next_of(const struct ml_grown *grown, const bool was_told[ML_COMPONENTS]) {
    enum ml_component most = ML_COMPONENTS;

    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        if (!was_told[i] && grown->components[i] > 0 &&
            (most == ML_COMPONENTS || grown->components[i] > grown->components[most])) {
            most = i;
        }
    }
    return most;
}

static size_t
put(char out_text[ML_GROWN_TEXT_BYTES], size_t at, const struct ml_grown *grown, enum ml_component i
) {
    const int64_t bytes = grown->components[i];

    at += (size_t)snprintf(
        out_text + at,
        ML_GROWN_TEXT_BYTES - at,
        "%s%s %s%s",
        at > 0 ? ", " : "",
        ml_component_name(i),
        bytes < 0 ? "-" : "+",
        ml_units_size(size_of(bytes)).text
    );
    return at;
}

const char *ml_grown_text(const struct ml_grown *grown, char out_text[ML_GROWN_TEXT_BYTES]) {
    bool was_told[ML_COMPONENTS] = {false};
    int64_t least = 0;
    size_t at = 0;

    out_text[0] = '\0';
    for (size_t n = 0; n < SHOWN; n++) {
        const enum ml_component i = next_of(grown, was_told);
        if (i == ML_COMPONENTS || grown->components[i] < least) {
            break;
        }
        least = n == 0 ? grown->components[i] / WORTH_A_WORD_PART : least;
        was_told[i] = true;
        at = put(out_text, at, grown, i);
    }
    if (!was_told[ML_COMPONENT_HEAP]) {
        (void)put(out_text, at, grown, ML_COMPONENT_HEAP);
    }
    return out_text;
}
