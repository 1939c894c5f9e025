#include "host/engine/dump/order.h"

#include <stdlib.h>

#include "host/engine/list/dump.h"
#include "host/engine/list/known.h"
#include "host/engine/state.h"
#include "host/process/clock.h"

/* The time in which the service brings all clients to one moment. */
enum { ML_DUMP_DEADLINE_MS = 10000 };

/* A program that was left out by name, but not its forks: readers of the report ask for programs.
 * Also a process that is not recorded any more and that this service does not know. */
static bool was_left_out(const struct ml_member *member) {
    return (member->left_out && !ml_recording_was_ever_on(member->recording) &&
            member->birth != ML_BIRTH_FORK) ||
           (ml_recording_is_lost(member->recording) && !ml_recording_in_service(member->recording));
}

/* Whether the list of processes has it, too: of that pid, or of a child by posix_spawn. */
static bool is_listed(const struct ml_engine *engine, const struct ml_not_profiled *item) {
    const struct ml_unrecorded *one = ml_unrecorded_newest(&engine->unrecorded, item->pid);
    return item->is_listed || (one != NULL && ml_list_told_of(item, one));
}

static bool is_told(const struct ml_engine *engine, const struct ml_unrecorded *one) {
    for (uint32_t i = 0; i < engine->not_profiled_count; i++) {
        if (ml_list_told_of(&engine->not_profiled[i], one)) {
            return true;
        }
    }
    return false;
}

/* Programs without a report, for readers that know no other list. */
static uint32_t add_untold(
    const struct ml_engine *engine, struct memlog_service_not_profiled *all, uint32_t count
) {
    const struct ml_unrecorded_table *table = &engine->unrecorded;
    for (uint32_t i = 0; i < table->count && count < ML_NOT_PROFILED_MAX; i++) {
        const struct ml_unrecorded *one = table->items[i];
        if (one->kind == ML_UNRECORDED_PROGRAM && one->folded_processes == 0 &&
            !is_told(engine, one)) {
            const char *path = one->executable != NULL ? one->executable : one->name;
            all[count++] = (struct memlog_service_not_profiled){
                .pid = (uint32_t)one->pid,
                .parent_pid = (uint32_t)one->parent_pid,
                .reason = ml_string_of(one->reason),
                .path = ml_string_cut(path, MEMLOG_SERVICE_NOT_PROFILED_PATH_LIMIT),
                .listed = true,
            };
        }
    }
    return count;
}

/* Programs that are not in the profile, and why. NULL: no memory. Owner: the caller; the texts are
 * the engine's. */
static struct memlog_service_not_profiled *
not_profiled_of(const struct ml_engine *engine, uint32_t *out_count) {
    struct memlog_service_not_profiled *all = calloc(ML_NOT_PROFILED_MAX, sizeof(*all));
    uint32_t count = 0;
    for (uint32_t i = 0; all != NULL && i < engine->not_profiled_count; i++) {
        const struct ml_not_profiled *item = &engine->not_profiled[i];
        const char *path = item->path != NULL ? item->path : "";
        all[count++] = (struct memlog_service_not_profiled){
            .pid = (uint32_t)item->pid,
            .parent_pid = (uint32_t)item->parent_pid,
            .reason = ml_string_of(item->reason),
            .path = ml_string_cut(path, MEMLOG_SERVICE_NOT_PROFILED_PATH_LIMIT),
            .has_other_profiler = item->told_of == ML_TOLD_OF_PROFILED,
            .listed = is_listed(engine, item),
        };
    }
    for (uint32_t i = 0; all != NULL && i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        const char *path = member->executable[0] != '\0' ? member->executable : member->name;
        if (was_left_out(member) && count < ML_NOT_PROFILED_MAX) {
            all[count++] = (struct memlog_service_not_profiled){
                .pid = (uint32_t)member->pid,
                .parent_pid = (uint32_t)member->parent_pid,
                .reason = ml_string_of(member->note),
                .path = ml_string_cut(path, MEMLOG_SERVICE_NOT_PROFILED_PATH_LIMIT),
                .listed = !ml_recording_in_service(member->recording),
            };
        }
    }
    *out_count = all != NULL ? add_untold(engine, all, count) : 0;
    return all;
}

/* Times in which nothing was seen. NULL: no memory. Owner: as above. */
static struct memlog_service_gap *
gaps_of(const struct ml_engine *engine, struct memlog_service_moment now, uint32_t *out_count) {
    struct memlog_service_gap *all =
        calloc(engine->gaps_count + engine->members.count + 1, sizeof(*all));
    uint32_t count = 0;
    for (uint32_t i = 0; all != NULL && i < engine->gaps_count; i++) {
        all[count++] = (struct memlog_service_gap){
            .from = engine->gaps[i].from,
            .to = engine->gaps[i].to,
            .reason = ml_string_of(engine->gaps[i].reason),
        };
    }
    for (uint32_t i = 0; all != NULL && i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        if (member->stopped.ticks != 0 && ml_recording_in_service(member->recording) &&
            count < MEMLOG_SERVICE_MAX_CLIENTS) {
            all[count++] = (struct memlog_service_gap){
                .id = member->id,
                .from = member->stopped,
                .to = member->state == ML_MEMBER_RUNNING ? now : member->end,
                .reason = ml_string_of("its recording was stopped"),
            };
        }
    }
    *out_count = count;
    return all;
}

void ml_dump_order_init(
    struct ml_engine *engine,
    const struct ml_dump_job *job,
    struct memlog_service_dump_order *out_order
) {
    const struct memlog_service_moment now = ml_clock_timestamp(engine->clock);
    *out_order = (struct memlog_service_dump_order
    ){.reason = job->reason,
      .content = job->content,
      .now = now,
      .deadline_ms = ML_DUMP_DEADLINE_MS,
      .ids = {.items = job->ids, .count = job->ids_count},
      .program = ml_string_cut(
          engine->root_argv != NULL ? engine->root_argv[0] : "",
          MEMLOG_SERVICE_DUMP_ORDER_PROGRAM_LIMIT
      ),
      .lost_forks = engine->lost_forks,
      .whole = ml_string_of(ml_whole_mode_names[engine->options->whole]),
      .has_trigger = job->trigger.decision.dump,
      .trigger = job->trigger.decision};
    out_order->trigger.reason = ml_string_of(job->trigger.reason);
    out_order->not_profiled.items = not_profiled_of(engine, &out_order->not_profiled.count);
    out_order->gaps.items = gaps_of(engine, now, &out_order->gaps.count);
    if (job->content == MEMLOG_SERVICE_DUMP_CONTENT_EVERYTHING) {
        ml_list_order(engine, out_order);
    }
}

void ml_dump_order_fini(struct memlog_service_dump_order *order) {
    ml_list_order_fini(order);
    free((void *)(uintptr_t)order->not_profiled.items);
    free((void *)(uintptr_t)order->gaps.items);
}
