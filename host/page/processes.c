/* The page's processes: rows, figures, start and stop. Room: host. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/uncovered.h"
#include "host/page/internal.h"

const struct memlog_service_client_figures *
ml_page_figures_of(const struct memlog_service_figures_reply *reply, uint32_t id) {
    for (uint32_t i = 0; reply != NULL && i < reply->clients.count; i++) {
        if (reply->clients.items[i].id == id) {
            return &reply->clients.items[i];
        }
    }
    return NULL;
}

static void set_totals(json_t *json, const struct memlog_service_totals *totals) {
    ml_page_set_number(json, "live_bytes", totals->live_bytes);
    ml_page_set_number(json, "live_blocks", totals->live_blocks);
    ml_page_set_number(json, "peak_bytes", totals->peak_bytes);
    ml_page_set_number(json, "peak_blocks", totals->peak_blocks);
    ml_page_set_number(json, "total_bytes", totals->total_bytes);
    ml_page_set_number(json, "total_blocks", totals->total_blocks);
}

json_t *ml_page_tree(const struct memlog_service_figures_reply *reply) {
    static const struct memlog_service_figures_reply none = {.left_bytes = 0};
    const struct memlog_service_figures_reply *known = reply != NULL ? reply : &none;
    json_t *json = json_object();
    set_totals(json, &known->tree);
    ml_page_set_number(json, "left_bytes", known->left_bytes);
    ml_page_set_number(json, "left_blocks", known->left_blocks);
    return json;
}

static void add_unrecorded(struct ml_uncovered *uncovered, const struct ml_engine_process *one) {
    ml_uncovered_add_unrecorded(
        uncovered,
        one->name,
        one->note,
        one->is_idle,
        one->footprint_bytes,
        one->folded_processes > 0 ? one->folded_processes : 1
    );
}

/* Processes whose memory is not in the tree's figures, in the report's words. */
static struct ml_uncovered
uncovered_of(const struct ml_engine *engine, const struct memlog_service_figures_reply *reply) {
    struct ml_uncovered uncovered = {
        .not_profiled = ml_engine_told_count(engine), .missed = ml_engine_list_missed(engine)};
    const uint32_t count = ml_engine_processes_count(engine);
    for (uint32_t i = 0; i < count; i++) {
        const struct ml_engine_process process = ml_engine_process(engine, i);
        if (!ml_recording_in_service(process.recording)) {
            add_unrecorded(&uncovered, &process);
        }
    }
    for (uint32_t i = 0; reply != NULL && i < reply->clients.count; i++) {
        const struct memlog_service_client_figures *figures = &reply->clients.items[i];
        if (figures->id == 0 || figures->id > count) {
            continue;
        }
        ml_uncovered_add_unseen(
            &uncovered,
            ml_engine_process(engine, figures->id - 1).name,
            figures->unseen.data,
            figures->unseen.count_bytes,
            figures->coverage_private_bytes,
            figures->folded_processes > 0 ? figures->folded_processes : 1
        );
    }
    for (uint32_t i = 0; i < ml_engine_unrecorded_count(engine); i++) {
        const struct ml_engine_process one = ml_engine_unrecorded(engine, i);
        add_unrecorded(&uncovered, &one);
    }
    return uncovered;
}

json_t *
ml_page_coverage(const struct ml_engine *engine, const struct memlog_service_figures_reply *reply) {
    const struct ml_uncovered uncovered = uncovered_of(engine, reply);
    char words[ML_UNCOVERED_BYTES];
    json_t *json = json_object();
    ml_uncovered_words(&uncovered, words);
    ml_page_set_number(json, "lost_forks", ml_engine_lost_forks(engine));
    /* Without the service no allocator is known. */
    ml_page_set_bool(json, "covered", reply != NULL && !ml_uncovered_is_any(&uncovered));
    ml_page_set_text(
        json,
        "uncovered",
        words[0] != '\0' || reply != NULL ? words : "memlog-service does not serve just now"
    );
    return json;
}

static json_t *words_of(const struct ml_command_line *line) {
    json_t *words = json_array();
    for (size_t i = 0; i < line->count; i++) {
        const char *word = line->arguments[i];
        (void)json_array_append_new(words, ml_page_text(word, strlen(word)));
    }
    return words;
}

static void set_figures(json_t *json, const struct memlog_service_client_figures *figures) {
    static const struct memlog_service_client_figures none = {.complete = false};
    const struct memlog_service_client_figures *f = figures != NULL ? figures : &none;
    set_totals(json, &f->totals);
    if (f->folded_processes > 0) {
        ml_page_set_number(json, "folded_processes", f->folded_processes);
    }
    ml_page_set_bool(json, "in_tree", figures != NULL && !f->left_tree);
    ml_page_set_number(json, "held_at_tree_peak_bytes", f->held_at_tree_peak_bytes);
    ml_page_set_number(json, "held_at_tree_peak_blocks", f->held_at_tree_peak_blocks);
    ml_page_set_number(json, "inherited_bytes", f->inherited_bytes);
    ml_page_set_number(json, "inherited_blocks", f->inherited_blocks);
    ml_page_set_number(json, "events", f->events);
    ml_page_set_number(json, "lost_events", f->lost_events);
    ml_page_set_number(json, "unknown_frees", f->unknown_frees);
    ml_page_set_number(json, "truncated_stacks", f->truncated_stacks);
    ml_page_set_number(json, "stack_nodes", f->nodes);
    /* Without a profile it is not known whether events were lost. */
    (void)json_object_set_new(
        json, "complete", figures != NULL ? json_boolean(f->complete) : json_null()
    );
    ml_page_set_number(json, "waits", f->waits);
    ml_page_set_number(json, "waited_ns", f->waited_ns);
    ml_page_set_number(json, "longest_wait_ns", f->longest_wait_ns);
    (void
    )json_object_set_new(json, "trouble", ml_page_text(f->trouble.data, f->trouble.count_bytes));
}

/* Both at one moment. If its memory was not read, the private part is not known. */
static void set_reading(json_t *json, bool was_read, uint64_t heap_bytes, uint64_t private_bytes) {
    ml_page_set_number(json, "heap_bytes", heap_bytes);
    if (was_read) {
        ml_page_set_number(json, "private_bytes", private_bytes);
    } else {
        (void)json_object_set_new(json, "private_bytes", json_null());
    }
}

/* As the report has it. Of a process that is not recorded memory alone is known, and `unseen` is
 * why. */
static json_t *coverage_of(
    const struct ml_engine_process *process,
    const struct memlog_service_client_figures *figures,
    const char *unseen
) {
    json_t *json = json_object();
    if (figures != NULL) {
        set_reading(
            json,
            figures->coverage_was_read,
            figures->coverage_heap_bytes,
            figures->coverage_private_bytes
        );
    } else {
        set_reading(json, process->resident_bytes != 0, 0, process->footprint_bytes);
    }
    (void)json_object_set_new(
        json,
        "allocator",
        figures != NULL && figures->allocator.count_bytes > 0
            ? ml_page_text(figures->allocator.data, figures->allocator.count_bytes)
            : json_string("unknown")
    );
    (void)json_object_set_new(
        json,
        "unseen",
        figures != NULL ? ml_page_text(figures->unseen.data, figures->unseen.count_bytes)
                        : ml_page_text(unseen, strlen(unseen))
    );
    return json;
}

/* What the rows of all processes begin with. */
static json_t *row_of(const struct ml_engine_process *process) {
    json_t *json = json_object();
    ml_page_set_number(json, "id", process->id);
    ml_page_set_number(json, "parent_id", process->parent_id);
    ml_page_set_number(json, "pid", (uint64_t)process->pid);
    ml_page_set_number(json, "parent_pid", (uint64_t)process->parent_pid);
    ml_page_set_text(json, "name", process->name);
    (void)json_object_set_new(json, "command_line", words_of(process->line));
    ml_page_set_text(json, "role", ml_role_name(process->role));
    ml_page_set_text(json, "state", process->state);
    ml_page_set_bool(json, "from_startup", process->from_startup);
    ml_page_set_bool(json, "recording", ml_recording_is_on(process->recording));
    ml_page_set_bool(json, "recorded", ml_recording_in_service(process->recording));
    ml_page_set_bool(json, "recordable", process->is_recordable);
    return json;
}

static void set_memory_and_times(json_t *json, const struct ml_engine_process *process) {
    ml_page_set_number(json, "footprint_bytes", process->footprint_bytes);
    ml_page_set_number(json, "resident_bytes", process->resident_bytes);
    (void)json_object_set_new(json, "exit_code", json_integer(process->ending.exit_code));
    ml_page_set_number(json, "signal", (uint64_t)process->ending.signal);
    ml_page_set_number(json, "start_ms", process->start.realtime_ns / 1000000);
    ml_page_set_number(json, "end_ms", process->end.realtime_ns / 1000000);
}

/* What memlog costs it, beside what was promised. */
static void put_overhead(json_t *json, const struct ml_overhead *overhead) {
    if (overhead->promised_ppm > 0) {
        ml_page_set_number(json, "promised_ppm", overhead->promised_ppm);
    }
    if (overhead->is_measured) {
        ml_page_set_number(json, "cost_ppm", ml_overhead_sum(overhead->whole));
        ml_page_set_number(json, "recent_cost_ppm", ml_overhead_sum(overhead->recent));
    }
}

json_t *ml_page_process_row(
    const struct ml_engine_process *process, const struct memlog_service_client_figures *figures
) {
    const uint32_t mode = process->stack_mode;
    json_t *json = row_of(process);
    ml_page_set_text(
        json, "reason", ml_recording_in_service(process->recording) ? "" : process->note
    );
    ml_page_set_number(json, "sampling_bytes", process->sampling_bytes);
    if (process->overhead != NULL) {
        put_overhead(json, process->overhead);
    }
    ml_page_set_text(
        json, "stack_mode", mode < ML_STACK_MODE_COUNT ? ml_stack_mode_names[mode] : "?"
    );
    set_memory_and_times(json, process);
    ml_page_set_text(json, "note", process->note);
    (void
    )json_object_set_new(json, "coverage", coverage_of(process, figures, "it is not recorded"));
    set_figures(json, figures);
    return json;
}

/* A row of a process that no profile tells of. */
static json_t *unrecorded_row(const struct ml_engine_process *one) {
    const bool hides = ml_uncovered_hides(one->is_idle, one->footprint_bytes);
    json_t *json = row_of(one);
    ml_page_set_bool(json, "idle", one->is_idle);
    ml_page_set_text(json, "reason", one->note);
    ml_page_set_text(json, "note", one->note);
    set_memory_and_times(json, one);
    ml_page_set_number(json, "folded_processes", one->folded_processes);
    (void)json_object_set_new(json, "coverage", coverage_of(one, NULL, hides ? one->note : ""));
    set_figures(json, NULL);
    return json;
}

json_t *ml_page_unrecorded(struct ml_engine *engine, uint32_t most) {
    const uint32_t count = ml_engine_unrecorded_count(engine);
    const uint32_t first = count > most ? count - most : 0;
    json_t *rows = json_array();
    for (uint32_t i = first; i < count; i++) {
        ml_engine_judge_unrecorded(engine, i);
        const struct ml_engine_process one = ml_engine_unrecorded(engine, i);
        (void)json_array_append_new(rows, unrecorded_row(&one));
    }
    return rows;
}

json_t *ml_page_not_profiled(const struct ml_engine *engine) {
    json_t *list = json_array();
    for (uint32_t i = 0; i < ml_engine_told_count(engine); i++) {
        const struct ml_engine_told one = ml_engine_told(engine, i);
        json_t *json = json_object();
        ml_page_set_number(json, "pid", (uint64_t)one.pid);
        ml_page_set_number(json, "parent_pid", (uint64_t)one.parent_pid);
        ml_page_set_text(json, "path", one.path);
        ml_page_set_text(json, "reason", one.reason);
        (void)json_array_append_new(list, json);
    }
    return list;
}

static void
on_figures(void *context, enum ml_status status, const struct memlog_service_figures_reply *reply) {
    struct ml_page_question *question = context;
    struct ml_engine *engine = question->page->engine;
    struct ml_http_request *request = ml_page_asked(question);
    if (request == NULL) {
        return;
    }
    const struct memlog_service_figures_reply *figures = status == ML_OK ? reply : NULL;
    json_t *answer = json_object();
    json_t *rows = json_array();
    for (uint32_t i = 0; i < ml_engine_processes_count(engine); i++) {
        const struct ml_engine_process process = ml_engine_process(engine, i);
        (void)json_array_append_new(
            rows, ml_page_process_row(&process, ml_page_figures_of(figures, process.id))
        );
    }
    json_t *others = ml_page_unrecorded(engine, UINT32_MAX);
    (void)json_array_extend(rows, others);
    json_decref(others);
    ml_page_set_number(answer, "memlog", 1);
    (void)json_object_set_new(answer, "dump", ml_page_coverage(engine, figures));
    (void)json_object_set_new(answer, "tree", ml_page_tree(figures));
    (void)json_object_set_new(answer, "processes", rows);
    (void)json_object_set_new(answer, "not_profiled", ml_page_not_profiled(engine));
    ml_page_answer_json(request, 200, answer);
}

void ml_page_get_processes(struct ml_page *page, struct ml_http_request *request) {
    const char *dump = ml_http_argument(request, "dump");
    if (page->engine == NULL || (dump != NULL && dump[0] != '\0')) {
        ml_page_get_dump_processes(page, request, dump);
        return;
    }
    struct ml_page_question *question = ml_page_ask(page, request);
    if (question != NULL) {
        ml_engine_figures(page->engine, on_figures, question);
    }
}

/* What the page must know before it asks for more. */
void ml_page_get_session(struct ml_page *page, struct ml_http_request *request) {
    const struct ml_engine *engine = page->engine;
    json_t *answer = json_object();
    json_t *program = json_array();
    char *const *words = engine != NULL ? ml_engine_program(engine) : NULL;
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        const char *argument = words[i];
        (void)json_array_append_new(program, ml_page_text(argument, strlen(argument)));
    }
    ml_page_set_number(answer, "memlog", 1);
    ml_page_set_text(answer, "page_token", page->guard.page_token);
    ml_page_set_bool(answer, "live", engine != NULL);
    ml_page_set_text(answer, "folder", ml_page_folder(page));
    (void)json_object_set_new(answer, "program", program);
    if (engine != NULL) {
        ml_page_set_text(answer, "mode", ml_mode_name(ml_engine_options(engine)->mode));
        ml_page_set_number(answer, "sampling_bytes", ml_engine_options(engine)->sampling_bytes);
        ml_page_set_number(
            answer, "start_ms", ml_engine_start_moment(engine).realtime_ns / 1000000
        );
        ml_page_set_bool(answer, "uploads", ml_engine_uploader(engine) != NULL);
    }
    ml_page_answer_json(request, 200, answer);
}

/* ---- start and stop */

static void on_controlled(void *context, const char *trouble) {
    struct ml_http_request *request = ml_page_asked(context);
    if (request == NULL) {
        return;
    }
    if (trouble[0] != '\0') {
        ml_page_answer_error(request, 409, "%s", trouble);
        return;
    }
    json_t *answer = json_object();
    ml_page_set_bool(answer, "done", true);
    ml_page_answer_json(request, 200, answer);
}

/* The running process of the run that the path names. 0: there is none, and it was answered. */
static pid_t running_of(struct ml_page *page, struct ml_http_request *request) {
    char word[ML_PAGE_WORD_BYTES] = "";
    uint64_t pid = 0;
    (void)sscanf(ml_http_path(request), "/api/v1/processes/%63[^/]", word);
    if (!ml_count_read(word, INT_MAX, &pid)) {
        ml_page_answer_error(request, 400, "%.40s is not a process id", word);
        return 0;
    }
    const bool is_there = ml_engine_running(page->engine, (pid_t)pid) != NULL;
    if (!is_there && ml_engine_has_ended(page->engine, (pid_t)pid)) {
        ml_page_answer_error(request, 409, "process %s has ended", word);
    } else if (!is_there) {
        ml_page_answer_error(
            request, 404, "process %s: %s", word, ml_engine_why_not(page->engine, (pid_t)pid)
        );
    }
    return is_there ? (pid_t)pid : 0;
}

/* False: it was answered. */
static bool
stack_mode_of(struct ml_http_request *request, const struct ml_engine *engine, uint32_t *out_mode) {
    const char *text = ml_http_argument(request, "stack_mode");
    *out_mode = (uint32_t)ml_engine_options(engine)->stack_mode;
    if (text == NULL || text[0] == '\0') {
        return true;
    }
    for (uint32_t mode = 0; mode < ML_STACK_MODE_COUNT; mode++) {
        if (strcmp(text, ml_stack_mode_names[mode]) == 0) {
            *out_mode = mode;
            return true;
        }
    }
    ml_page_answer_error(
        request,
        400,
        "stack_mode=%.40s: native, native-with-thread-names, pseudo or mixed is wanted",
        text
    );
    return false;
}

void ml_page_post_start(struct ml_page *page, struct ml_http_request *request) {
    const struct ml_options *options = ml_engine_options(page->engine);
    const bool is_governed =
        options->overhead.promised_ppm != 0; /* 0: at what the promise allows */
    uint64_t sampling_bytes = is_governed ? 0 : options->sampling_bytes;
    uint32_t stack_mode = 0;
    if (!ml_page_number_argument(
            request, "sampling_bytes", ML_SAMPLING_MAX_BYTES, &sampling_bytes
        ) ||
        !stack_mode_of(request, page->engine, &stack_mode)) {
        return;
    }
    if (sampling_bytes == 0 && !is_governed) {
        ml_page_answer_error(
            request, 400, "sampling_bytes=0: 1 records every allocation, N one in N bytes"
        );
        return;
    }
    const pid_t pid = running_of(page, request);
    struct ml_page_question *question = pid != 0 ? ml_page_ask(page, request) : NULL;
    if (question != NULL) {
        ml_engine_start_process(
            page->engine, pid, sampling_bytes, stack_mode, on_controlled, question
        );
    }
}

void ml_page_post_stop(struct ml_page *page, struct ml_http_request *request) {
    const pid_t pid = running_of(page, request);
    struct ml_page_question *question = pid != 0 ? ml_page_ask(page, request) : NULL;
    if (question != NULL) {
        ml_engine_stop_process(page->engine, pid, on_controlled, question);
    }
}
