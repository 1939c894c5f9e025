#include "tools/analyzer/sqlite/file.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/trace/heap_name.h"
#include "ipc/trace/mapping.h"
#include "ipc/wire/event.h"
#include "tools/analyzer/progress/progress.h"
#include "tools/analyzer/sqlite/figures.h"
#include "tools/analyzer/sqlite/memory.h"
#include "tools/analyzer/formats/units.h"

/* tools/analyzer/sqlite/schema.sql */
extern const char ml_sqlite_schema[];

/* Mapping of frames that are in no file. */
enum { NO_MAPPING = 0 };

struct writer {
    sqlite3 *database;
    const struct ml_profile *profile;
    const struct ml_stacks *stacks;
    enum ml_status status; /* the first trouble */
};

static void check(struct writer *writer, int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE && writer->status == ML_OK) {
        writer->status = ML_ENV_MEMORY; /* it is all in memory: nothing else can fail */
    }
}

static sqlite3_stmt *prepare(struct writer *writer, const char *sql) {
    sqlite3_stmt *statement = NULL;

    check(writer, sqlite3_prepare_v2(writer->database, sql, -1, &statement, NULL));
    return statement;
}

static void bind(struct writer *writer, sqlite3_stmt *statement, int column, uint64_t value) {
    check(writer, sqlite3_bind_int64(statement, column, (sqlite3_int64)value));
}

static void bind_text(
    struct writer *writer,
    sqlite3_stmt *statement,
    int column,
    const char *bytes,
    size_t count_bytes
) {
    check(
        writer,
        sqlite3_bind_text64(statement, column, bytes, count_bytes, SQLITE_TRANSIENT, SQLITE_UTF8)
    );
}

static void
bind_string(struct writer *writer, sqlite3_stmt *statement, int column, const char *text) {
    bind_text(writer, statement, column, text, strlen(text));
}

/* NULL if there is no value; also what the row before had there is gone then. */
static void
bind_if(struct writer *writer, sqlite3_stmt *statement, int column, bool is_there, uint64_t value) {
    check(
        writer,
        is_there ? sqlite3_bind_int64(statement, column, (sqlite3_int64)value)
                 : sqlite3_bind_null(statement, column)
    );
}

static int bind_totals(
    struct writer *writer, sqlite3_stmt *statement, int column, const struct ml_profile_totals *one
) {
#define BIND(figure) bind(writer, statement, column++, one->figure);
    ML_PROFILE_FIGURES(BIND)
    return column;
}

/* Insert the row that is bound. */
static void step(struct writer *writer, sqlite3_stmt *statement) {
    check(writer, sqlite3_step(statement));
    check(writer, sqlite3_reset(statement));
}

static uint64_t upid_of(const struct writer *writer, uint32_t id) {
    for (size_t i = 0; id != 0 && i < writer->profile->processes_count; i++) {
        if (writer->profile->processes[i].id == id) {
            return i + 1;
        }
    }
    for (size_t i = 0; id != 0 && i < writer->profile->others_count; i++) {
        if (writer->profile->others[i].id == id) {
            return writer->profile->processes_count + i + 1;
        }
    }
    return 0;
}

/* Recorded ones, then the others: the upid is the place, from 1. */
static const struct ml_profile_process *process_at(const struct ml_profile *profile, size_t at) {
    return at < profile->processes_count ? &profile->processes[at]
                                         : &profile->others[at - profile->processes_count];
}

/* The command line, its words parted by blanks. */
static void bind_command(
    struct writer *writer,
    sqlite3_stmt *statement,
    int column,
    const struct ml_profile_process *process
) {
    char *words = NULL;
    size_t count = 0;
    FILE *text = open_memstream(&words, &count);

    for (size_t i = 0; text && i < process->arguments_count; i++) {
        fwrite(" ", 1, i > 0, text);
        fwrite(process->arguments[i].bytes, 1, process->arguments[i].count_bytes, text);
    }
    if (!text || fclose(text) != 0) {
        check(writer, SQLITE_NOMEM);
    } else {
        bind_text(writer, statement, column, words, count);
    }
    free(words);
}

static void put_processes(struct writer *writer) {
    sqlite3_stmt *into = prepare(writer, "INSERT INTO process VALUES (?1,?1,?2,?3,?4,?5,?6,?7,?8)");

    const size_t count = writer->profile->processes_count + writer->profile->others_count;

    for (size_t i = 0; writer->status == ML_OK && i < count; i++) {
        const struct ml_profile_process *process = process_at(writer->profile, i);
        uint64_t parent = upid_of(writer, process->parent_id);

        bind(writer, into, 1, i + 1);
        bind(writer, into, 2, process->pid);
        bind_text(writer, into, 3, process->name.bytes, process->name.count_bytes);
        bind(writer, into, 4, process->start.boottime_ns);
        bind_if(
            writer,
            into,
            5,
            process->state != MEMLOG_SERVICE_PROCESS_STATE_RUNNING,
            process->end.boottime_ns
        );
        bind_if(writer, into, 6, parent != 0, parent);
        bind_command(writer, into, 7, process);
        bind(writer, into, 8, process->id);
        step(writer, into);
    }
    sqlite3_finalize(into);
}

static void put_mapping(
    struct writer *writer, sqlite3_stmt *into, uint64_t id, const struct ml_code_file *file
) {
    const struct ml_trace_module module = {
        .start = file->start,
        .end = file->end,
        .bias = file->bias,
        .code_address = file->code_address,
        .code_offset = file->code_offset,
    };
    const struct ml_trace_mapping code = ml_trace_mapping_of(&module);
    char hex[ML_PROFILE_HEX_BYTES];

    bind(writer, into, 1, id);
    bind_string(writer, into, 2, ml_profile_hex(file->build_id, hex));
    bind(writer, into, 3, code.exact_offset);
    bind(writer, into, 4, code.start_offset);
    bind(writer, into, 5, code.start);
    bind(writer, into, 6, code.end);
    bind(writer, into, 7, code.load_bias);
    bind_text(writer, into, 8, file->path.bytes, file->path.count_bytes);
    step(writer, into);
}

static void put_mappings(struct writer *writer) {
    const struct ml_code_file none = {
        .path = {.bytes = "", .count_bytes = 0}, .build_id = {.bytes = "", .count_bytes = 0}};
    sqlite3_stmt *into =
        prepare(writer, "INSERT INTO stack_profile_mapping VALUES (?1,?2,?3,?4,?5,?6,?7,?8)");

    put_mapping(writer, into, NO_MAPPING, &none);
    for (size_t i = 0; writer->status == ML_OK && i < writer->stacks->files_count; i++) {
        put_mapping(writer, into, i + 1, &writer->stacks->files[i]);
    }
    sqlite3_finalize(into);
}

static void put_symbols(struct writer *writer, sqlite3_stmt *into, size_t place_number) {
    const struct ml_place *place = &writer->stacks->places[place_number];

    for (size_t i = 0; i < place->symbols_count; i++) {
        const struct ml_symbol *symbol = &writer->stacks->symbols[place->first_symbol + i];
        bind(writer, into, 1, place_number + 1);
        bind_string(writer, into, 2, symbol->function);
        bind_string(writer, into, 3, symbol->file);
        bind(writer, into, 4, symbol->line);
        bind(writer, into, 5, symbol->inlined);
        step(writer, into);
    }
}

/* Places are numbered from 1 as frames; "no stack" stands behind them. */
static void put_frames(struct writer *writer) {
    sqlite3_stmt *into =
        prepare(writer, "INSERT INTO stack_profile_frame VALUES (?1,?2,?3,?4,?5,?6)");
    sqlite3_stmt *into_symbols = prepare(
        writer,
        "INSERT INTO stack_profile_symbol(symbol_set_id,name,source_file,line_number,inlined)"
        " VALUES (?1,?2,?3,?4,?5)"
    );
    size_t count = writer->stacks->places_count;

    for (size_t i = 0; writer->status == ML_OK && i < count; i++) {
        const struct ml_place *place = &writer->stacks->places[i];
        char buffer[ML_PLACE_NAME_BYTES];
        const char *name = ml_place_name(place, buffer);

        if (place->kind == ML_FRAME_ADDRESS) {
            name = "";
        }
        check(writer, sqlite3_bind_null(into, 6));
        if (place->symbols_count > 0) {
            const struct ml_symbol *symbol =
                &writer->stacks->symbols[place->first_symbol + place->symbols_count - 1];
            name = symbol->obfuscated ? symbol->obfuscated : symbol->function;
            if (symbol->obfuscated) {
                bind_string(writer, into, 6, symbol->function);
            }
        }
        bind(writer, into, 1, i + 1);
        bind_string(writer, into, 2, name);
        bind(
            writer, into, 3, place->file == ML_STACKS_NONE ? NO_MAPPING : (uint64_t)place->file + 1
        );
        bind(writer, into, 4, place->offset);
        bind_if(writer, into, 5, place->symbols_count > 0, i + 1);
        step(writer, into);
        put_symbols(writer, into_symbols, i);
    }
    bind(writer, into, 1, count + 1);
    bind_string(writer, into, 2, "[no stack]");
    bind(writer, into, 3, NO_MAPPING);
    bind(writer, into, 4, 0);
    bind_if(writer, into, 5, false, 0);
    check(writer, sqlite3_bind_null(into, 6));
    step(writer, into);
    sqlite3_finalize(into);
    sqlite3_finalize(into_symbols);
}

/* Nodes are numbered from 1 as call sites; "no stack" stands behind them. */
static void put_callsites(struct writer *writer) {
    sqlite3_stmt *into = prepare(writer, "INSERT INTO stack_profile_callsite VALUES (?1,?2,?3,?4)");
    size_t count = writer->stacks->nodes_count;
    uint32_t *depths = calloc(count + 1, sizeof *depths);

    if (!depths) {
        check(writer, SQLITE_NOMEM);
    }
    for (size_t i = 0; writer->status == ML_OK && i < count; i++) {
        const struct ml_stack_node *node = &writer->stacks->nodes[i];

        ml_progress_pieces("Writing call sites", i, count, NULL);
        bind(writer, into, 1, i + 1);
        if (node->parent != ML_STACKS_NONE) {
            depths[i] = depths[node->parent] + 1;
        }
        bind(writer, into, 2, depths[i]);
        bind_if(writer, into, 3, node->parent != ML_STACKS_NONE, (uint64_t)node->parent + 1);
        bind(writer, into, 4, (uint64_t)node->place + 1);
        step(writer, into);
    }
    bind(writer, into, 1, count + 1);
    bind(writer, into, 2, 0);
    bind_if(writer, into, 3, false, 0);
    bind(writer, into, 4, writer->stacks->places_count + 1);
    step(writer, into);
    sqlite3_finalize(into);
    free(depths);
}

static void put_allocation(
    struct writer *writer, sqlite3_stmt *into, uint64_t callsite, uint64_t blocks, uint64_t bytes
) {
    bind(writer, into, 3, callsite);
    bind(writer, into, 4, blocks);
    bind(writer, into, 5, bytes);
    bind(writer, into, 7, (int64_t)blocks < 0 || (int64_t)bytes < 0);
    step(writer, into);
}

static uint64_t callsite_of(const struct writer *writer, const struct ml_stack *stack) {
    return stack->node == ML_STACKS_NONE ? writer->stacks->nodes_count + 1
                                         : (uint64_t)stack->node + 1;
}

/* Of all heaps, by the names that they have among Perfetto's. */
static void put_allocations(
    struct writer *writer,
    const struct ml_profile_process *process,
    const struct ml_stack_list *list,
    sqlite3_stmt *into
) {
    for (size_t i = 0; writer->status == ML_OK && i < list->count; i++) {
        const struct ml_stack *stack = &list->stacks[i];
        const uint64_t freed_blocks = stack->own.total_blocks - stack->own.live_blocks;
        const uint64_t freed_bytes = stack->own.total_bytes - stack->own.live_bytes;
        const uint64_t callsite = callsite_of(writer, stack);

        if (stack->heap == 0 && writer->profile->heap.bytes) { /* a list without details */
            bind_text(
                writer, into, 6, writer->profile->heap.bytes, writer->profile->heap.count_bytes
            );
        } else {
            const struct ml_profile_text own = ml_profile_heap_name(process, stack->heap);
            struct ml_trace_heap_name name;
            ml_trace_heap_name(stack->heap, own.bytes, own.count_bytes, &name);
            bind_text(writer, into, 6, name.bytes, name.count_bytes);
        }
        put_allocation(writer, into, callsite, stack->own.total_blocks, stack->own.total_bytes);
        if (freed_blocks > 0 || freed_bytes > 0) {
            put_allocation(writer, into, callsite, -freed_blocks, -freed_bytes);
        }
    }
}

/* Of a process's figures: of the dump, or its end. */
static uint64_t ts_of(const struct ml_profile *profile, const struct ml_profile_process *process) {
    return process->state == MEMLOG_SERVICE_PROCESS_STATE_RUNNING ? profile->now.boottime_ns
                                                                  : process->end.boottime_ns;
}

static void put_process_stacks(
    struct writer *writer, size_t process_number, sqlite3_stmt *allocations, sqlite3_stmt *exact
) {
    const struct ml_profile_process *process = &writer->profile->processes[process_number];
    const struct ml_stack_list *list = &writer->stacks->processes[process_number];
    const struct ml_stack_list *details = &writer->stacks->details[process_number];

    bind(writer, allocations, 1, ts_of(writer->profile, process));
    bind(writer, allocations, 2, process_number + 1);
    put_allocations(writer, process, details->stacks ? details : list, allocations);
    bind(writer, exact, 1, process_number + 1);
    for (size_t i = 0; writer->status == ML_OK && i < list->count; i++) {
        const struct ml_stack *stack = &list->stacks[i];
        const struct ml_profile_text thread = ml_stacks_thread(writer->stacks, stack->node);
        int column = 0;

        ml_progress_pieces("Writing stacks", i, list->count, process->name.bytes);
        bind(writer, exact, 2, callsite_of(writer, stack));
        bind_text(writer, exact, 3, thread.bytes, thread.count_bytes);
        column = bind_totals(writer, exact, 4, &stack->own);
        bind(writer, exact, column++, stack->tree_peak_bytes);
        bind(writer, exact, column++, stack->tree_peak_blocks);
        bind(writer, exact, column, stack->temporary_blocks);
        step(writer, exact);
    }
}

static void put_stacks(struct writer *writer) {
    sqlite3_stmt *allocations = prepare(
        writer,
        "INSERT INTO heap_profile_allocation(ts,upid,heap_name,callsite_id,count,size,is_free,dump)"
        " VALUES (?1,?2,?6,?3,?4,?5,?7,1)"
    );
    sqlite3_stmt *exact = prepare(
        writer, "INSERT INTO memlog_stack VALUES (1,?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)"
    );

    for (size_t i = 0; writer->status == ML_OK && i < writer->profile->processes_count; i++) {
        put_process_stacks(writer, i, allocations, exact);
    }
    sqlite3_finalize(allocations);
    sqlite3_finalize(exact);
}

static void put_own(struct writer *writer) {
    sqlite3_stmt *dump = prepare(
        writer, "INSERT INTO memlog_dump VALUES (1,?13,?1,?2,?14,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)"
    );
    sqlite3_stmt *processes = prepare(
        writer,
        "INSERT INTO memlog_process VALUES "
        "(1,?1,?17,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)"
    );
    const struct ml_profile *profile = writer->profile;
    const uint32_t kind = profile->trigger.kind;
    char uncovered[ML_UNCOVERED_BYTES];

    bind_string(writer, dump, 1, ml_units_time(profile->now.realtime_ns).text);
    bind_string(writer, dump, 2, ml_profile_reason_name(profile->reason));
    bind_text(writer, dump, 3, profile->program.bytes, profile->program.count_bytes);
    bind(writer, dump, 4, ml_profile_is_complete(profile));
    (void)bind_totals(writer, dump, 5, &profile->tree);
    bind(writer, dump, 11, ml_profile_is_covered(profile));
    bind_string(writer, dump, 12, ml_profile_uncovered(profile, uncovered));
    bind(writer, dump, 13, profile->now.boottime_ns);
    bind_string(writer, dump, 14, kind == 0 ? "" : ml_profile_trigger_name(kind));
    step(writer, dump);
    for (size_t i = 0; writer->status == ML_OK && i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];

        bind(writer, processes, 1, i + 1);
        bind_string(writer, processes, 2, ml_profile_role_name(process->role));
        bind_string(writer, processes, 3, ml_profile_state_name(process->state));
        bind(writer, processes, 4, process->complete && !process->partial);
        bind(writer, processes, 5, process->sampling_bytes);
        bind(writer, processes, 6, process->footprint_bytes);
        bind(writer, processes, 7, process->resident_bytes);
        bind(writer, processes, 8, process->inherited_bytes);
        bind(writer, processes, 9, process->inherited_blocks);
        (void)bind_totals(writer, processes, 10, &process->totals);
        bind(writer, processes, 16, ml_profile_stands_for(process));
        bind(writer, processes, 17, ts_of(profile, process));
        step(writer, processes);
    }
    sqlite3_finalize(dump);
    sqlite3_finalize(processes);
}

static void put_unrecorded(struct writer *writer) {
    const struct ml_profile *profile = writer->profile;
    sqlite3_stmt *into =
        prepare(writer, "INSERT INTO memlog_unrecorded VALUES (1,?1,?2,?3,?4,?5,?6,?7,?8)");

    for (size_t i = 0; writer->status == ML_OK && i < profile->others_count; i++) {
        const struct ml_profile_process *other = &profile->others[i];
        const struct ml_profile_text *reason = &other->not_recorded_reason;

        bind(writer, into, 1, profile->processes_count + i + 1);
        bind_string(writer, into, 2, ml_profile_role_name(other->role));
        bind_string(writer, into, 3, ml_profile_state_name(other->state));
        bind_text(writer, into, 4, reason->bytes, reason->count_bytes);
        bind(writer, into, 5, other->recording == ML_PROFILE_IDLE);
        bind_if(writer, into, 6, other->coverage_was_read, other->footprint_bytes);
        bind_if(writer, into, 7, other->coverage_was_read, other->resident_bytes);
        bind(writer, into, 8, ml_profile_stands_for(other));
        step(writer, into);
    }
    sqlite3_finalize(into);
}

static void put_memory(struct writer *writer) {
    const size_t count = writer->profile->processes_count + writer->profile->others_count;
    struct ml_sqlite_memory memory;

    ml_sqlite_memory_open(&memory, writer->database);
    for (size_t i = 0; memory.code == SQLITE_OK && i < count; i++) {
        ml_sqlite_memory_put(&memory, i + 1, process_at(writer->profile, i));
    }
    ml_sqlite_memory_close(&memory);
    check(writer, memory.code);
}

static void run(struct writer *writer, const char *sql) {
    check(writer, sqlite3_exec(writer->database, sql, NULL, NULL, NULL));
}

enum ml_status
ml_sqlite_file_make(const struct ml_stacks *stacks, unsigned char **out_bytes, int64_t *out_count) {
    struct writer writer = {.profile = stacks->profile, .stacks = stacks};
    sqlite3_int64 count_bytes = 0;

    *out_bytes = NULL;
    /* In memory, then out as any other format: the analyzer need not open a path for it. */
    check(&writer, sqlite3_open(":memory:", &writer.database));
    run(&writer, "PRAGMA journal_mode = OFF");
    run(&writer, "BEGIN");
    run(&writer, ml_sqlite_schema);
    if (writer.status == ML_OK) {
        put_processes(&writer);
        put_mappings(&writer);
        put_frames(&writer);
        put_callsites(&writer);
        put_stacks(&writer);
        put_own(&writer);
        put_unrecorded(&writer);
        put_memory(&writer);
        check(&writer, ml_sqlite_figures_put(writer.database, stacks));
    }
    run(&writer, "COMMIT");
    if (writer.status == ML_OK) {
        *out_bytes = sqlite3_serialize(writer.database, "main", &count_bytes, 0);
        writer.status = *out_bytes ? ML_OK : ML_ENV_MEMORY;
    }
    *out_count = count_bytes;
    sqlite3_close(writer.database);
    return writer.status;
}

enum ml_status ml_sqlite_file_write(const struct ml_stacks *stacks, FILE *out) {
    unsigned char *bytes = NULL;
    int64_t count = 0;
    enum ml_status status = ml_sqlite_file_make(stacks, &bytes, &count);

    if (status == ML_OK && fwrite(bytes, 1, (size_t)count, out) != (size_t)count) {
        status = ML_ENV_SYSTEM;
    }
    sqlite3_free(bytes);
    return status;
}
