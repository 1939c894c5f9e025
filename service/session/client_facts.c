/* What the host says of a client. Nothing here costs a profile: a lack of memory is noted as the
 * client's trouble, and its figures stay right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/session/internal.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"

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
    client->overhead = facts->overhead;
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
        ml_client_read(
            client, facts->read_ticks, facts->footprint_bytes, facts->footprint_files_bytes
        );
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

/* ---- names of generated code, from files that are read when names are needed */

static void drop(struct ml_client_code *code, enum ml_code_kind kind) {
    if (code->files[kind].fd_plus_1 != 0) {
        (void)close(code->files[kind].fd_plus_1 - 1);
        code->files[kind].fd_plus_1 = 0;
    }
}

void ml_client_take_code(
    struct ml_client *client, enum ml_code_kind kind, int take_fd, const struct ml_timestamp *now
) {
    if (client->fold != NULL) { /* it stands for several: what this one names is named already */
        (void)close(take_fd);
        return;
    }
    drop(&client->code, kind);
    client->code.files[kind].fd_plus_1 = take_fd + 1;
    client->code.now = *now;
}

void ml_client_drop_code(struct ml_client *client) {
    for (unsigned kind = 0; kind < ML_CODE_KINDS; kind++) {
        drop(&client->code, kind);
    }
}

/* Whether the file may have more names than at the last reading, or a node has come since. */
static bool
is_news(struct ml_code_handed *file, const struct ml_stack_store *stacks, uint64_t *out_bytes) {
    struct stat about;
    *out_bytes = fstat(file->fd_plus_1 - 1, &about) == 0 ? (uint64_t)about.st_size : 0;
    return *out_bytes != file->read_bytes || stacks->unnamed_count != file->left_unnamed;
}

void ml_client_name_code(struct ml_client *client, const struct ml_rest *rest) {
    const struct ml_timestamp *start = &client->session->start;
    const struct ml_timestamp *now = &client->code.now;
    const struct ml_naming_clock clock = {
        .start_ticks = start->ticks,
        .start_ns = start->monotonic_ns,
        .now_ticks = now->ticks,
        .now_ns = now->monotonic_ns,
        .ticks_are_ns = start->ticks == start->monotonic_ns && now->ticks == now->monotonic_ns};
    const struct ml_code_pause pause = {
        .take = rest != NULL ? rest->take : NULL, .context = rest != NULL ? rest->context : NULL};
    for (unsigned kind = ML_CODE_KINDS; kind-- > 0;) { /* the one with times first */
        struct ml_code_handed *file = &client->code.files[kind];
        uint64_t bytes = 0;
        if (file->fd_plus_1 == 0) {
            continue;
        }
        if (client->stacks.unnamed_count > 0 && is_news(file, &client->stacks, &bytes)) {
            /* What cannot be named has no name: nothing else depends on it. */
            (void)!ml_naming_read(
                &client->stacks, file->fd_plus_1 - 1, kind, &clock, rest != NULL ? &pause : NULL
            );
            file->read_bytes = bytes;
            file->left_unnamed = client->stacks.unnamed_count;
        }
        drop(&client->code, kind);
    }
}

void ml_session_name_code(struct ml_session *session) {
    for (struct ml_client *client = session->first; client != NULL; client = client->next) {
        ml_client_name_code(client, NULL);
    }
}
