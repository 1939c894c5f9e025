#include "tools/analyzer/sqlite/memory.h"

#include <stdbool.h>
#include <string.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tools/analyzer/memory/components.h"

static void check(struct ml_sqlite_memory *memory, int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE && memory->code == SQLITE_OK) {
        memory->code = code;
    }
}

static void
bind(struct ml_sqlite_memory *memory, sqlite3_stmt *statement, int column, uint64_t value) {
    check(memory, sqlite3_bind_int64(statement, column, (sqlite3_int64)value));
}

static void bind_text(
    struct ml_sqlite_memory *memory,
    sqlite3_stmt *statement,
    int column,
    const char *bytes,
    size_t count_bytes
) {
    check(
        memory,
        sqlite3_bind_text64(statement, column, bytes, count_bytes, SQLITE_TRANSIENT, SQLITE_UTF8)
    );
}

static void step(struct ml_sqlite_memory *memory, sqlite3_stmt *statement) {
    check(memory, sqlite3_step(statement));
    check(memory, sqlite3_reset(statement));
}

void ml_sqlite_memory_open(struct ml_sqlite_memory *memory, sqlite3 *database) {
    *memory = (struct ml_sqlite_memory){.code = SQLITE_OK};
    check(
        memory,
        sqlite3_prepare_v2(
            database,
            "INSERT INTO profiler_smaps VALUES "
            "(NULL,?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,1)",
            -1,
            &memory->regions,
            NULL
        )
    );
    check(
        memory,
        sqlite3_prepare_v2(
            database,
            "INSERT INTO memlog_component VALUES (1,?1,?2,?3,?4,?5,?6,?7)",
            -1,
            &memory->components,
            NULL
        )
    );
}

void ml_sqlite_memory_close(struct ml_sqlite_memory *memory) {
    sqlite3_finalize(memory->regions);
    sqlite3_finalize(memory->components);
}

/* As in memory-infra, and so in Perfetto. */
static uint64_t flags_of(uint32_t permissions) {
    enum { EXECUTE = 1, WRITE = 2, READ = 4, SHARED = 128 };

    return ((permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_READ) != 0 ? READ : 0) |
           ((permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_WRITE) != 0 ? WRITE : 0) |
           ((permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_EXECUTE) != 0 ? EXECUTE : 0) |
           ((permissions & MEMLOG_SERVICE_MEMORY_PERMISSION_SHARED) != 0 ? SHARED : 0);
}

/* The path, and without what the kernel adds to a file that is gone. */
static void bind_path(struct ml_sqlite_memory *memory, const struct ml_profile_text *name) {
    static const char deleted[] = " (deleted)";
    static const char nameless[] = "[anon]"; /* as the dump's own packets for Perfetto say */
    const size_t suffix_bytes = sizeof deleted - 1;
    const bool is_named = name->count_bytes > 0;
    const char *bytes = is_named ? name->bytes : nameless;
    const size_t count = is_named ? name->count_bytes : sizeof nameless - 1;
    const bool is_deleted =
        count > suffix_bytes && memcmp(bytes + count - suffix_bytes, deleted, suffix_bytes) == 0;

    bind_text(memory, memory->regions, 3, bytes, count);
    bind_text(memory, memory->regions, 4, bytes, is_deleted ? count - suffix_bytes : count);
    bind(memory, memory->regions, 5, is_deleted);
}

static void put_region(struct ml_sqlite_memory *memory, const struct ml_profile_region *region) {
    const uint64_t figures[] = {
        region->size_kb,
        region->private_dirty_kb,
        region->swap_kb,
        region->start,
        flags_of(region->permissions),
        region->private_clean_kb,
        region->shared_dirty_kb,
        region->shared_clean_kb,
        region->proportional_kb,
        region->resident_kb,
        region->anonymous_kb};
    enum { FIRST_COLUMN = 6 };

    bind_path(memory, &region->name);
    for (int i = 0; i < (int)(sizeof figures / sizeof figures[0]); i++) {
        bind(memory, memory->regions, FIRST_COLUMN + i, figures[i]);
    }
    step(memory, memory->regions);
}

static void put_component(
    struct ml_sqlite_memory *memory,
    enum ml_component component,
    const struct ml_component_figures *figures
) {
    const char *name = ml_component_name(component);

    bind_text(memory, memory->components, 3, name, strlen(name));
    bind(memory, memory->components, 4, figures->private);
    bind(memory, memory->components, 5, figures->shared);
    bind(memory, memory->components, 6, figures->proportional);
    bind(memory, memory->components, 7, figures->swapped);
    step(memory, memory->components);
}

void ml_sqlite_memory_put(
    struct ml_sqlite_memory *memory, uint64_t upid, const struct ml_profile_process *process
) {
    struct ml_components components;

    if (process->regions_count == 0) {
        return;
    }
    bind(memory, memory->regions, 1, upid);
    bind(memory, memory->regions, 2, process->regions_boottime_ns);
    for (size_t i = 0; memory->code == SQLITE_OK && i < process->regions_count; i++) {
        put_region(memory, &process->regions[i]);
    }
    ml_components_of(process, &components);
    bind(memory, memory->components, 1, upid);
    bind(memory, memory->components, 2, process->regions_boottime_ns);
    for (enum ml_component i = 0; memory->code == SQLITE_OK && i < ML_COMPONENTS; i++) {
        put_component(memory, i, &components.of[i]);
    }
}
