#include "host/engine/processes/member.h"

#include <stdlib.h>
#include <string.h>

/* Of all that do not know theirs. */
static char nothing[] = "";

static const uint8_t next_state[ML_MEMBER_STATE_COUNT][ML_MEMBER_EVENT_COUNT] = {
    [ML_MEMBER_RUNNING] =
        {[ML_MEMBER_EVENT_EXIT] = ML_MEMBER_EXITED,
         [ML_MEMBER_EVENT_KILL] = ML_MEMBER_KILLED,
         [ML_MEMBER_EVENT_EXEC] = ML_MEMBER_REPLACED},
    [ML_MEMBER_KILLED] = {[ML_MEMBER_EVENT_TELL] = ML_MEMBER_KILLED_TOLD},
};

enum ml_member_state ml_member_next(enum ml_member_state state, enum ml_member_event event) {
    if ((unsigned)state >= ML_MEMBER_STATE_COUNT || (unsigned)event >= ML_MEMBER_EVENT_COUNT) {
        return ML_MEMBER_DEAD;
    }
    return (enum ml_member_state)next_state[state][event];
}

static const struct {
    const char *name;
    enum memlog_service_process_state told;
} states[ML_MEMBER_STATE_COUNT] = {
    [ML_MEMBER_DEAD] = {"dead", MEMLOG_SERVICE_PROCESS_STATE_EXITED},
    [ML_MEMBER_RUNNING] = {"running", MEMLOG_SERVICE_PROCESS_STATE_RUNNING},
    [ML_MEMBER_EXITED] = {"exited", MEMLOG_SERVICE_PROCESS_STATE_EXITED},
    [ML_MEMBER_KILLED] = {"killed", MEMLOG_SERVICE_PROCESS_STATE_KILLED},
    [ML_MEMBER_REPLACED] = {"replaced", MEMLOG_SERVICE_PROCESS_STATE_REPLACED},
    [ML_MEMBER_KILLED_TOLD] = {"killed", MEMLOG_SERVICE_PROCESS_STATE_KILLED},
};

const char *ml_member_state_name(enum ml_member_state state) {
    return (unsigned)state < ML_MEMBER_STATE_COUNT ? states[state].name : "?";
}

enum memlog_service_process_state ml_member_state_told(enum ml_member_state state) {
    return states[state].told;
}

void ml_members_init(struct ml_members *members, void *context) {
    *members = (struct ml_members){.context = context};
}

void ml_members_fini(struct ml_members *members) {
    for (uint32_t i = 0; i < members->count; i++) {
        ml_command_line_fini(&members->items[i]->line);
        ml_command_line_fini(&members->items[i]->before.line);
        ml_member_executable(members->items[i], "");
        ml_memory_history_fini(&members->items[i]->memory);
        free(members->items[i]);
    }
    free(members->items);
    *members = (struct ml_members){.items = NULL};
}

enum ml_status
ml_members_add(struct ml_members *members, pid_t pid, struct ml_member **out_member) {
    if (members->count >= ML_MEMBERS_MAX) {
        return ML_PEER_LIMIT;
    }
    if (members->count == members->capacity) {
        uint32_t capacity = members->capacity == 0 ? 64 : members->capacity * 2;
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is meant */
        struct ml_member **items =
            reallocarray(members->items, capacity, sizeof(struct ml_member *));
        if (items == NULL) {
            return ML_ENV_MEMORY;
        }
        members->items = items;
        members->capacity = capacity;
    }
    struct ml_member *member = calloc(1, sizeof(*member));
    if (member == NULL) {
        return ML_ENV_MEMORY;
    }
    member->pid = pid;
    member->pidfd = ML_MEMBER_PIDFD_NONE;
    member->state = ML_MEMBER_RUNNING;
    member->recording = ML_RECORDING_NEVER;
    member->attachment = ML_ATTACHMENT_NONE;
    member->members = members;
    member->executable = nothing;
    struct ml_member **bucket = &members->by_pid[(uint32_t)pid % ML_MEMBERS_BUCKETS];
    member->next_by_pid = *bucket;
    *bucket = member;
    ml_endpoint_init(&member->endpoint);
    members->items[members->count++] = member;
    members->running_count++;
    member->id = members->count;
    *out_member = member;
    return ML_OK;
}

void ml_member_executable(struct ml_member *member, const char *path) {
    char *copy = path[0] != '\0' ? strdup(path) : NULL;
    if (member->executable != nothing) {
        free(member->executable);
    }
    member->executable = copy != NULL ? copy : nothing;
}

/* From the newest on: pids come back. */
static struct ml_member *find_pid(const struct ml_members *members, pid_t pid, bool running) {
    for (struct ml_member *member = members->by_pid[(uint32_t)pid % ML_MEMBERS_BUCKETS];
         member != NULL;
         member = member->next_by_pid) {
        if (member->pid == pid && (!running || member->state == ML_MEMBER_RUNNING)) {
            return member;
        }
    }
    return NULL;
}

struct ml_member *ml_members_running(const struct ml_members *members, pid_t pid) {
    return members->running_count == 0 ? NULL : find_pid(members, pid, true);
}

struct ml_member *ml_members_newest(const struct ml_members *members, pid_t pid) {
    return find_pid(members, pid, false);
}

struct ml_member *ml_members_find(const struct ml_members *members, uint32_t id) {
    return id >= 1 && id <= members->count ? members->items[id - 1] : NULL;
}

uint32_t ml_members_recording(const struct ml_members *members, enum memlog_service_role role) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < members->count; i++) {
        const struct ml_member *member = members->items[i];
        if (member->state == ML_MEMBER_RUNNING && member->role == role &&
            ml_recording_is_on(member->recording)) {
            count++;
        }
    }
    return count;
}

enum ml_status ml_member_set_state(struct ml_member *member, enum ml_member_event event) {
    enum ml_member_state next = ml_member_next(member->state, event);
    if (next == ML_MEMBER_DEAD) {
        return ML_PEER_STATE;
    }
    if (member->state == ML_MEMBER_RUNNING) {
        member->members->running_count--;
    }
    member->state = next;
    return ML_OK;
}

void ml_member_set_recording(struct ml_member *member, enum ml_recording_event event) {
    const enum ml_recording next = ml_recording_next(member->recording, event);
    if (next == ML_RECORDING_FORBIDDEN) {
        member->members->forbidden_count++;
        return;
    }
    member->recording = next;
}

void ml_member_set_attachment(struct ml_member *member, enum ml_attachment_event event) {
    const enum ml_attachment_state next = ml_attachment_next(member->attachment, event);
    if (next == ML_ATTACHMENT_FORBIDDEN) {
        member->members->forbidden_count++;
        return;
    }
    member->attachment = next;
}
