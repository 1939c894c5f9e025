#include "service/control/client_facts.h"

#include <stdlib.h>
#include <string.h>

/* The text behind `at` with a NUL, as the session takes texts. Returns what is behind that. */
static char *put_text(char *at, struct ml_string text) {
    memcpy(at, text.data, text.count_bytes);
    return at + text.count_bytes + 1; /* the NUL is calloc's */
}

static enum ml_status
describe(struct ml_client *client, const struct memlog_service_process_facts *facts) {
    const struct memlog_service_string_array *line = &facts->command_line;
    /* The contract bounds both; they came in one message, so the sum fits. */
    size_t bytes = (size_t)facts->name.count_bytes + 1;
    for (uint32_t i = 0; i < line->count; i++) {
        bytes += (size_t)line->items[i].count_bytes + 1;
    }
    const char **words = calloc(1, (size_t)line->count * sizeof(*words) + bytes);
    if (words == NULL) {
        return ML_ENV_MEMORY;
    }
    const char *const name = (const char *)(words + line->count);
    char *at = put_text((char *)(words + line->count), facts->name);
    for (uint32_t i = 0; i < line->count; i++) {
        words[i] = at;
        at = put_text(at, line->items[i]);
    }
    const enum ml_status status = ml_client_describe(
        client, facts->role, name, words, line->count, facts->footprint_bytes, facts->resident_bytes
    );
    free(words);
    return status;
}

static void take_trouble(struct ml_client *client, struct ml_string trouble) {
    char text[ML_TROUBLE_MAX_BYTES];
    const size_t count =
        trouble.count_bytes < sizeof(text) ? trouble.count_bytes : sizeof(text) - 1;
    if (count > 0) {
        memcpy(text, trouble.data, count);
        text[count] = 0;
        ml_client_trouble(client, text);
    }
}

void ml_client_take_facts(
    struct ml_client *client, const struct memlog_service_process_facts *facts
) {
    const enum ml_status status = describe(client, facts);
    if (ml_status_family(status) == ML_FAMILY_BUG) {
        abort();
    }
    if (status != ML_OK) {
        ml_client_trouble(client, ml_status_text(status));
    }
    if (facts->executable.count_bytes > 0) {
        ml_client_executable(
            client, (const char *)facts->executable.data, facts->executable.count_bytes
        );
    }
    take_trouble(client, facts->trouble);
    if (facts->second_libc) {
        ml_client_second_libc(client);
    }
    if (facts->read_ticks != 0) {
        ml_client_read(client, facts->read_ticks, facts->footprint_bytes);
    }
}

static void take_name(char *out_text, size_t text_bytes, struct ml_string name) {
    const size_t count = name.count_bytes < text_bytes ? name.count_bytes : text_bytes - 1;
    if (count > 0) {
        memcpy(out_text, name.data, count);
    }
    out_text[count] = 0;
}

void ml_client_take_allocator(
    struct ml_client *client, const struct memlog_service_allocator_facts *facts
) {
    struct ml_allocator allocator = {.in_front = facts->in_front, .in_program = facts->in_program};
    take_name(allocator.owner, sizeof(allocator.owner), facts->owner);
    take_name(allocator.entry_point, sizeof(allocator.entry_point), facts->entry_point);
    take_name(allocator.entry_point_of, sizeof(allocator.entry_point_of), facts->entry_point_of);
    ml_client_allocator(client, &allocator);
}
