#include "tools/analyzer/whole/whole.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/uncovered.h"
#include "tools/analyzer/formats/sum.h"
#include "tools/analyzer/formats/units.h"

_Static_assert(
    (int)ML_COMPONENTS + ML_WHOLE_MAPPED_MAX < (int)ML_SUM_PARTS_MAX,
    "a line has room for each component"
);

/* Of components whose name is long. */
static const char *short_name(enum ml_component component) {
    static const char *const names[ML_COMPONENTS] = {
        [ML_COMPONENT_SLACK] = "slack",
        [ML_COMPONENT_INHERITED] = "inherited",
        [ML_COMPONENT_SHARED] = "shared",
        [ML_COMPONENT_ANONYMOUS] = "other"};

    return names[component] ? names[component] : ml_component_name(component);
}

static void add_components(struct ml_whole *whole, const struct ml_profile_process *process) {
    struct ml_components components;

    ml_components_of(process, &components);
    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        ml_component_figures_add(&whole->components.of[i], &components.of[i]);
    }
    ml_component_figures_add(&whole->components.all, &components.all);
    whole->components.moved =
        (int64_t)((uint64_t)whole->components.moved + (uint64_t)components.moved);
    if (whole->trouble.count_bytes == 0) {
        whole->trouble = process->memory_trouble;
    }
    whole->heapless_count +=
        process->recording == ML_PROFILE_RECORDED && !process->heap_was_laid ? 1 : 0;
    whole->sampled_count += !process->heap_was_laid && process->sampling_bytes > 1;
}

/* Of a process whose mappings may not be read: which of its anonymous pages its forks share is not
 * known. */
static uint64_t unreadable_bytes(const struct ml_profile_process *process) {
    const struct ml_profile_status *status = &process->status;

    return status->was_read && status->is_unreadable
               ? status->anonymous_bytes + status->swapped_bytes
               : 0;
}

void ml_whole_add(struct ml_whole *whole, const struct ml_profile_process *process) {
    const uint64_t latest_bytes = unreadable_bytes(process); /* the other may be of before */
    const uint64_t private_bytes =
        latest_bytes > 0 ? latest_bytes : ml_profile_private_bytes(process);

    whole->unreadable_count += process->status.is_unreadable ? 1 : 0;
    if (process->regions_count == 0 && private_bytes == 0) {
        whole->never_read_count += ml_profile_stands_for(process);
        return;
    }
    whole->read_count += ml_profile_stands_for(process);
    if (process->regions_count == 0) {
        whole->unread_bytes += private_bytes;
        if (!process->status.is_unreadable && whole->unread_why.count_bytes == 0) {
            whole->unread_why = process->memory_trouble;
        }
    } else {
        add_components(whole, process);
    }
    if (private_bytes > whole->most_bytes) {
        whole->most_bytes = private_bytes;
    }
}

static void
add_running(struct ml_whole *whole, const struct ml_profile_process *processes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (processes[i].state == MEMLOG_SERVICE_PROCESS_STATE_RUNNING) {
            ml_whole_add(whole, &processes[i]);
        }
    }
}

void ml_whole_of_running(const struct ml_profile *profile, struct ml_whole *out) {
    *out = (struct ml_whole
    ){.is_off = profile->whole.count_bytes > 0 && strcmp(profile->whole.bytes, "off") == 0};
    add_running(out, profile->processes, profile->processes_count);
    add_running(out, profile->others, profile->others_count);
}

bool ml_whole_of_tree_peak(const struct ml_profile *profile, struct ml_whole *out) {
    *out = (struct ml_whole){0};
    for (size_t i = 0; i < profile->processes_count; i++) {
        struct ml_profile_process then;
        if (ml_profile_at_tree_peak(&profile->processes[i], &then)) {
            ml_whole_add(out, &then);
        }
    }
    return out->read_count > 0;
}

uint64_t ml_whole_bytes(const struct ml_whole *whole) {
    return whole->components.all.private + whole->unread_bytes;
}

const char *
ml_whole_text(const struct ml_whole *whole, size_t columns, char out_text[ML_WHOLE_TEXT_BYTES]) {
    struct ml_sum_part parts[ML_COMPONENTS + 1 + ML_WHOLE_MAPPED_MAX];
    size_t count = ML_COMPONENTS + 1;

    if (whole->components.all.private == 0 && whole->unread_bytes > 0) {
        snprintf(
            out_text,
            ML_WHOLE_TEXT_BYTES,
            "%s, its parts were not read%s",
            ml_units_size(whole->unread_bytes).text,
            whole->is_off ? " (--whole=off)" : ""
        );
        return out_text;
    }
    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        parts[i] = (struct ml_sum_part){short_name(i), whole->components.of[i].private};
    }
    parts[ML_COMPONENTS] = (struct ml_sum_part){"not read", whole->unread_bytes};
    for (size_t i = 0; i < ML_WHOLE_MAPPED_MAX; i++) {
        const struct ml_whole_mapped *mapped = &whole->mapped[i];
        parts[count++] = (struct ml_sum_part){mapped->name, mapped->private_bytes};
        parts[ML_COMPONENT_MAPPED].bytes -= mapped->private_bytes;
    }
    return ml_sum_text(parts, count, columns, out_text);
}

/* Notes, joined by semicolons. */
struct notes {
    char *text;
    size_t at;
};

__attribute__((format(printf, 2, 3))) static void
note(struct notes *notes, const char *format, ...) {
    const size_t room = ML_WHOLE_TEXT_BYTES - notes->at;
    va_list arguments;
    int count = 0;

    if (notes->at > 0) {
        notes->at += (size_t)snprintf(notes->text + notes->at, room, "; ");
    }
    va_start(arguments, format);
    count = vsnprintf(notes->text + notes->at, ML_WHOLE_TEXT_BYTES - notes->at, format, arguments);
    va_end(arguments);
    notes->at += count > 0 ? (size_t)count : 0;
}

const char *ml_whole_notes(const struct ml_whole *whole, char out_text[ML_WHOLE_TEXT_BYTES]) {
    const int64_t moved = whole->components.moved;
    const uint64_t moved_bytes = moved < 0 ? 0 - (uint64_t)moved : (uint64_t)moved;
    struct notes notes = {.text = out_text};

    out_text[0] = '\0';
    if (moved_bytes > 0) {
        note(&notes, "\u00b1 %s moved", ml_units_size(moved_bytes).text);
    }
    if (whole->unreadable_count > 0) {
        note(
            &notes,
            "%s unreadable process%s, with all anonymous memory",
            ml_units_count(whole->unreadable_count).text,
            whole->unreadable_count == 1 ? "" : "es"
        );
    }
    if (whole->unread_why.count_bytes > 0) {
        note(&notes, "not read: %.200s", whole->unread_why.bytes);
    }
    if (whole->trouble.count_bytes > 0) {
        const char *unread = ML_MEMORY_PAGES_UNREAD;
        const bool is_unread = strncmp(whole->trouble.bytes, unread, strlen(unread)) == 0;
        note(&notes, "%s%.200s", is_unread ? "" : "not stopped: ", whole->trouble.bytes);
    }
    if (whole->unread_bytes > 0 && whole->components.all.private > 0) {
        note(&notes, "not read: what that part is made of");
    }
    if (whole->heapless_count > 0) {
        note(
            &notes,
            whole->sampled_count > 0 ? "sampled: which part of it is heap is not known"
                                     : "read as it ended: which part of it is heap is not known"
        );
    }
    if (whole->never_read_count > 0) {
        note(
            &notes,
            "%s process%s never read",
            ml_units_count(whole->never_read_count).text,
            whole->never_read_count == 1 ? " was" : "es were"
        );
    }
    return out_text;
}
