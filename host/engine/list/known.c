#include "host/engine/list/known.h"

#include <string.h>
#include <unistd.h>

#include "host/engine/list/identity.h"

void ml_engine_add_helper(struct ml_engine *engine, pid_t pid) {
    struct ml_list *list = engine->list;
    list->helpers[list->helpers_next] = pid;
    list->helpers_next = (list->helpers_next + 1) % ML_LIST_HELPERS;
}

void ml_list_forget_helper(struct ml_engine *engine, pid_t pid) {
    for (unsigned i = 0; i < ML_LIST_HELPERS; i++) {
        if (engine->list->helpers[i] == pid) {
            engine->list->helpers[i] = 0;
        }
    }
}

bool ml_list_is_helper(const struct ml_engine *engine, pid_t pid) {
    bool is_one = pid == engine->link.pid || pid == getpid();
    for (unsigned i = 0; i < ML_LIST_HELPERS && !is_one; i++) {
        is_one = engine->list->helpers[i] == pid;
    }
    return is_one;
}

/* An end is noted when it is noticed. A process whose end is noted after that moment may have lived
 * then. */
struct ml_list_somebody ml_list_find(struct ml_engine *engine, pid_t pid, uint64_t at_ns) {
    const struct ml_member *member = ml_members_newest(&engine->members, pid);
    struct ml_unrecorded *one = ml_unrecorded_newest(&engine->unrecorded, pid);
    member = member != NULL && member->pid_passed_on ? NULL : member;
    one = one != NULL && one->pid_passed_on ? NULL : one;
    const bool is_member = member != NULL && member->state == ML_MEMBER_RUNNING;
    const bool is_listed = one != NULL && one->state == ML_MEMBER_RUNNING;
    if (is_member || (!is_listed && member != NULL && member->end.monotonic_ns >= at_ns)) {
        return (struct ml_list_somebody){.member = member};
    }
    const bool was_listed = is_listed || (one != NULL && one->end.monotonic_ns >= at_ns);
    return (struct ml_list_somebody){.one = was_listed ? one : NULL};
}

uint32_t ml_list_id_of(struct ml_list_somebody somebody) {
    return somebody.member != NULL ? somebody.member->id
                                   : (somebody.one != NULL ? somebody.one->id : somebody.gone_id);
}

/* Whether the report is its own, and not of another process that had its pid. */
static bool is_own_word(const struct ml_not_profiled *item, const struct ml_unrecorded *one) {
    const bool is_late = one->state != ML_MEMBER_RUNNING &&
                         item->heard_ns > one->end.monotonic_ns + ml_list_report_late_ns;
    return item->pid == one->pid && !is_late && item->heard_ns >= one->born_ns;
}

bool ml_list_told_of(const struct ml_not_profiled *item, const struct ml_unrecorded *one) {
    const bool is_fork = ml_unrecorded_is_fork(one);
    const bool is_of_fork = item->told_of == ML_TOLD_OF_LOST_FORK;
    if (is_of_fork || is_fork) {
        return is_of_fork && is_fork && is_own_word(item, one);
    }
    const char *path = item->path != NULL ? item->path : "";
    const char *own = one->executable != NULL ? one->executable : one->name;
    if (!ml_list_has_name(one)) {
        return !item->is_listed && is_own_word(item, one);
    }
    if (item->pid != one->pid && item->pid != one->parent_pid) {
        return false;
    }
    return path[0] == '\0' ? item->pid == one->pid
                           : strcmp(basename(path), basename(own)) == 0 ||
                                 strncmp(basename(path), one->name, sizeof(one->name) - 1) == 0;
}
