/* Names of code that a run-time makes: the files in which it tells them go to the service. */
#include <unistd.h>

#include "host/engine/members/members.h"

/* Since when its files may be its own: a file of before is of another process with its number, or
 * of what it was before its exec. */
static uint64_t began_ns(const struct ml_member *member) {
    const uint64_t ns_per_s = 1000000000;
    const long ticks_per_s = sysconf(_SC_CLK_TCK);
    if (member->from_startup && member->birth != ML_BIRTH_FORK) {
        return member->start.realtime_ns;
    }
    if (ticks_per_s <= 0 || member->start_ticks == 0) {
        return member->start.realtime_ns;
    }
    const uint64_t began_boottime_ns = member->start_ticks * (ns_per_s / (uint64_t)ticks_per_s);
    return member->start.boottime_ns > began_boottime_ns
               ? member->start.realtime_ns - (member->start.boottime_ns - began_boottime_ns)
               : member->start.realtime_ns;
}

static void hand(
    struct ml_engine *engine,
    const struct ml_member *member,
    enum memlog_service_code_file_kind kind,
    int take_fd
) {
    if (take_fd >= 0) {
        const struct memlog_service_moment now = ml_engine_timestamp(engine);
        ml_service_link_code(&engine->link, member, kind, &now, take_fd);
        (void)close(take_fd);
    }
}

void ml_member_hand_code(struct ml_engine *engine, const struct ml_member *member) {
    const struct ml_code_files *files = &member->code_files;
    const uint64_t since_ns = began_ns(member);
    hand(
        engine,
        member,
        MEMLOG_SERVICE_CODE_FILE_KIND_PERF_MAP,
        ml_code_files_perf_map(files, since_ns)
    );
    hand(
        engine,
        member,
        MEMLOG_SERVICE_CODE_FILE_KIND_JIT_DUMP,
        ml_code_files_jit_dump(files, since_ns)
    );
}
