#include "tools/analyzer/formats/process_words.h"

#include <string.h>

/* Others of its name that are looked at: enough to tell what differs. */
enum { PEERS_MAX = 64 };

struct peers {
    const struct ml_profile_process *list[PEERS_MAX];
    size_t count;
};

static bool has_argument(const struct ml_profile_process *process, const char *argument) {
    for (size_t i = 1; i < process->arguments_count; i++) {
        if (strcmp(process->arguments[i].bytes, argument) == 0) {
            return true;
        }
    }
    return false;
}

/* Other processes of the same name. One with the same arguments does not count: an exec of itself,
 * a worker. */
static void find_peers(
    const struct ml_profile *profile,
    const struct ml_profile_process *process,
    struct peers *out_peers
) {
    out_peers->count = 0;
    for (size_t i = 0; i < profile->processes_count && out_peers->count < PEERS_MAX; i++) {
        const struct ml_profile_process *other = &profile->processes[i];
        if (other != process && other->arguments_count > 0 &&
            strcmp(other->name.bytes, process->name.bytes) == 0) {
            out_peers->list[out_peers->count++] = other;
        }
    }
}

/* Whether the argument is redundant: most processes have it, or it was listed already. */
static bool
is_common(const struct ml_profile_process *process, size_t at, const struct peers *peers) {
    const char *argument = process->arguments[at].bytes;

    for (size_t i = 1; i < at; i++) {
        if (strcmp(process->arguments[i].bytes, argument) == 0) {
            return true;
        }
    }
    size_t have = 0;
    for (size_t i = 0; i < peers->count; i++) {
        have += has_argument(peers->list[i], argument);
    }
    return 2 * have > peers->count;
}

void ml_process_words(
    const struct ml_profile *profile,
    const struct ml_profile_process *process,
    char *out_words,
    size_t out_bytes
) {
    struct peers peers;
    size_t at = 0;

    find_peers(profile, process, &peers);
    for (size_t i = 1; i < process->arguments_count && at + 1 < out_bytes; i++) {
        const struct ml_profile_text *argument = &process->arguments[i];
        if (argument->count_bytes == 0 || (peers.count > 0 && is_common(process, i, &peers))) {
            continue;
        }
        if (at > 0) {
            out_words[at++] = ' ';
        }
        const size_t room = out_bytes - 1 - at;
        const size_t length = strlen(argument->bytes);
        memcpy(out_words + at, argument->bytes, length < room ? length : room);
        at += length < room ? length : room;
    }
    out_words[at] = '\0';
}

/* The first process, or another image of it. */
static bool is_first(const struct ml_profile *profile, const struct ml_profile_process *process) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].parent_id == 0) {
            return process->parent_id == 0 || profile->processes[i].pid == process->pid;
        }
    }
    return process->parent_id == 0;
}

const char *
ml_process_role(const struct ml_profile *profile, const struct ml_profile_process *process) {
    if (process->role == MEMLOG_SERVICE_ROLE_OTHER) {
        return "";
    }
    if (process->role == MEMLOG_SERVICE_ROLE_BROWSER && is_first(profile, process)) {
        return "main";
    }
    return ml_profile_role_name(process->role);
}
