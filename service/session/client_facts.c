/* What the host says of a client. Nothing here costs a profile: a lack of memory is noted as the
 * client's trouble, and its figures stay right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/session/internal.h"

/* Write the text to `at`, with a NUL. Returns the place after it. */
static char *put_text(char *at, struct ml_string text) {
    memcpy(at, text.data, text.count_bytes);
    at[text.count_bytes] = 0;
    return at + text.count_bytes + 1;
}

/* One block holds the addresses of the words, the name and the words. */
bool ml_client_take_name(
    struct ml_client *client, const struct memlog_service_process_facts *facts
) {
    const struct memlog_service_string_array *line = &facts->command_line;
    /* The contract bounds both, and they came in one message, so the sum fits. */
    size_t bytes = line->count * sizeof(char *) + facts->name.count_bytes + 1;
    for (uint32_t i = 0; i < line->count; i++) {
        bytes += (size_t)line->items[i].count_bytes + 1;
    }
    char **words = malloc(bytes);
    if (words == NULL) {
        return false;
    }
    free(client->command_line);
    client->command_line = words;
    client->command_line_count = line->count;
    client->name = (char *)(words + line->count);
    char *at = put_text(client->name, facts->name);
    for (uint32_t i = 0; i < line->count; i++) {
        words[i] = at;
        at = put_text(at, line->items[i]);
    }
    client->role = facts->role;
    client->footprint_bytes = facts->footprint_bytes;
    client->resident_bytes = facts->resident_bytes;
    return true;
}

static void take_executable(struct ml_client *client, struct ml_string path) {
    char *copy = path.count_bytes > 0 ? malloc((size_t)path.count_bytes + 1) : NULL;
    if (copy != NULL) {
        (void)put_text(copy, path);
        free(client->executable);
        client->executable = copy;
    }
}

void ml_client_describe(
    struct ml_client *client, const struct memlog_service_process_facts *facts
) {
    char trouble[ML_TROUBLE_MAX_BYTES];
    if (client->fold != NULL) {
        return; /* it has the description of all that it stands for */
    }
    if (!ml_client_take_name(client, facts)) {
        ml_client_trouble(client, ml_status_text(ML_ENV_MEMORY));
    }
    take_executable(client, facts->executable);
    ml_string_copy(trouble, sizeof(trouble), facts->trouble);
    ml_client_trouble(client, trouble);
    if (facts->second_libc) {
        client->coverage.allocator.second_libc = true;
    }
    if (facts->read_ticks != 0) {
        ml_client_read(client, facts->read_ticks, facts->footprint_bytes);
    }
}

void ml_client_allocator(
    struct ml_client *client, const struct memlog_service_allocator_facts *facts
) {
    struct ml_allocator *allocator = &client->coverage.allocator;
    *allocator =
        (struct ml_allocator){.in_front = facts->in_front, .in_program = facts->in_program};
    ml_string_copy(allocator->owner, sizeof(allocator->owner), facts->owner);
    ml_string_copy(allocator->entry_point, sizeof(allocator->entry_point), facts->entry_point);
    ml_string_copy(
        allocator->entry_point_of, sizeof(allocator->entry_point_of), facts->entry_point_of
    );
}

void ml_client_trouble(struct ml_client *client, const char *reason) {
    if (client->trouble[0] == 0) {
        (void)snprintf(client->trouble, sizeof(client->trouble), "%s", reason);
    }
}
