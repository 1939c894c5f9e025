/* What the memory of the run is made of, as the analyzer says it: /api/v1/memory, and families of
 * /metrics. Room: host.
 *
 * One rule: it is read only while somebody asks, and takes a bounded part of the host's time: the
 * next reading waits many times as long as the last one took. The analyzer's answers are kept as
 * they came, unread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/page/internal.h"

/* Reading holds each process up a little, an analysis takes a processor at low priority. */
enum { INTERVAL_MIN_S = 5, READING_PART = 20, ANALYSIS_PART = 10 };

/* Answers that are kept for a chart. Above either, every second one goes. */
enum { KEPT_MAX = 720, KEPT_BYTES_MAX = 4 << 20, ANSWER_BYTES_MAX = 1 << 20 };

enum { NS_PER_S = 1000000000 };

struct ml_page_memory_waiter {
    ml_page_memory_ready *on_ready;
    void *context;
    SLIST_ENTRY(ml_page_memory_waiter) links;
};

static const char *const words[ML_PAGE_MEMORY_FORMS] = {
    [ML_PAGE_MEMORY_JSON] = "--memory", [ML_PAGE_MEMORY_METRICS] = "--metrics"};

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void ml_page_memory_init(struct ml_page *page) {
    ml_page_snapshot_init(&page->memory.snapshot, page, MEMLOG_SERVICE_DUMP_CONTENT_PROFILE);
    page->memory.snapshot.reads_memory = true;
    for (size_t i = 0; i < ML_PAGE_MEMORY_FORMS; i++) {
        page->memory.answers[i] = (struct ml_page_memory_answer){.page = page, .word = words[i]};
    }
}

/* ---- what is kept */

static void drop_first(struct ml_page_memory *memory, size_t count) {
    for (size_t i = 0; i < count; i++) {
        memory->kept_bytes -= memory->kept[i].bytes;
        free(memory->kept[i].text);
    }
    memory->kept_count -= count;
    memmove(memory->kept, memory->kept + count, memory->kept_count * sizeof(*memory->kept));
}

static void thin(struct ml_page_memory *memory) {
    size_t left = 0;
    for (size_t i = 0; i < memory->kept_count; i++) {
        if (i % 2 == 0) {
            memory->kept[left++] = memory->kept[i];
        } else {
            memory->kept_bytes -= memory->kept[i].bytes;
            free(memory->kept[i].text);
        }
    }
    memory->kept_count = left;
}

/* The text is the chart's latest. No memory: it is not kept. */
static void keep(struct ml_page_memory *memory, const char *text, size_t bytes) {
    if (memory->kept_count == KEPT_MAX || memory->kept_bytes + bytes > KEPT_BYTES_MAX) {
        thin(memory);
    }
    char *copy = malloc(bytes + 1);
    struct ml_page_memory_kept *grown =
        realloc(memory->kept, (memory->kept_count + 1) * sizeof(*memory->kept));
    memory->kept = grown != NULL ? grown : memory->kept;
    if (copy == NULL || grown == NULL) {
        free(copy);
        return;
    }
    memcpy(copy, text, bytes + 1);
    memory->kept[memory->kept_count++] =
        (struct ml_page_memory_kept){.text = copy, .bytes = bytes, .number = ++memory->last_number};
    memory->kept_bytes += bytes;
}

/* ---- a reading */

static void tell(struct ml_page_memory_answer *answer, const char *trouble) {
    SLIST_HEAD(, ml_page_memory_waiter) waiters = {SLIST_FIRST(&answer->waiters)};
    SLIST_INIT(&answer->waiters);
    while (!SLIST_EMPTY(&waiters)) {
        struct ml_page_memory_waiter *one = SLIST_FIRST(&waiters);
        SLIST_REMOVE_HEAD(&waiters, links);
        one->on_ready(one->context, trouble);
        free(one);
    }
}

void ml_page_memory_fini(struct ml_page *page) {
    ml_page_snapshot_fini(&page->memory.snapshot);
    for (size_t i = 0; i < ML_PAGE_MEMORY_FORMS; i++) {
        tell(&page->memory.answers[i], "memlog ends");
        free(page->memory.answers[i].text);
    }
    drop_first(&page->memory, page->memory.kept_count);
    free(page->memory.kept);
}

static uint64_t most(uint64_t one, uint64_t other) {
    return one > other ? one : other;
}

static void end(struct ml_page_memory_answer *answer, const char *trouble) {
    const uint64_t now = now_ns();
    const uint64_t taken = answer->taken_ns != 0 ? answer->taken_ns : now;
    const uint64_t work_ns =
        most(READING_PART * (taken - answer->begun_ns), ANALYSIS_PART * (now - taken));
    answer->is_asking = false;
    answer->fresh_until_ns = now + most((uint64_t)INTERVAL_MIN_S * NS_PER_S, work_ns);
    tell(answer, trouble);
}

/* The file's bytes with a NUL behind them, without a line's end. NULL: it cannot be read. */
static char *text_of(int file_fd, uint64_t file_bytes, size_t *out_bytes) {
    char *text = file_bytes <= ANSWER_BYTES_MAX ? malloc((size_t)file_bytes + 1) : NULL;
    if (text == NULL || pread(file_fd, text, (size_t)file_bytes, 0) != (ssize_t)file_bytes) {
        free(text);
        return NULL;
    }
    text[file_bytes] = '\0';
    *out_bytes = (size_t)file_bytes;
    return text;
}

static void on_analyzed(
    void *context,
    enum ml_analyzer_verdict verdict,
    int take_file_fd,
    uint64_t file_bytes,
    const char *trouble
) {
    struct ml_page_memory_answer *answer = context;
    size_t bytes = 0;
    char *text = NULL;
    (void)verdict;
    if (take_file_fd >= 0) {
        text = text_of(take_file_fd, file_bytes, &bytes);
        (void)close(take_file_fd);
    }
    if (text != NULL) {
        free(answer->text);
        answer->text = text;
        answer->bytes = bytes;
        if (answer == &answer->page->memory.answers[ML_PAGE_MEMORY_JSON]) {
            keep(&answer->page->memory, text, bytes);
        }
    }
    end(answer, text != NULL ? "" : take_file_fd < 0 ? trouble : "the answer is too long");
}

static void on_snapshot(void *context, int fd, const char *trouble) {
    struct ml_page_memory_answer *answer = context;
    answer->taken_ns = now_ns();
    if (fd < 0 || answer->page->http == NULL) {
        end(answer, trouble[0] != '\0' ? trouble : "memlog ends");
        return;
    }
    const struct ml_analyzer_job job = {
        .arguments = {"page-data", answer->word, ML_ANALYZER_FIRST_PATH},
        .first_fd = fd,
        .second_fd = -1,
        .on_done = on_analyzed,
        .context = answer};
    ml_analyzer_start(answer->page->analyzer, &job);
}

static void begin(struct ml_page_memory_answer *answer) {
    answer->is_asking = true;
    answer->begun_ns = now_ns();
    answer->taken_ns = 0;
    ml_page_take_snapshot(&answer->page->memory.snapshot, on_snapshot, answer);
}

void ml_page_memory_ask(
    struct ml_page *page,
    enum ml_page_memory_form form,
    bool takes_older,
    ml_page_memory_ready *on_ready,
    void *context
) {
    struct ml_page_memory_answer *answer = &page->memory.answers[form];
    const bool is_fresh = answer->text != NULL && now_ns() < answer->fresh_until_ns;
    if (is_fresh || (takes_older && answer->text != NULL)) {
        on_ready(context, "");
    } else {
        struct ml_page_memory_waiter *waiter = calloc(1, sizeof(*waiter));
        if (waiter == NULL) {
            on_ready(context, "no memory");
            return;
        }
        *waiter = (struct ml_page_memory_waiter){.on_ready = on_ready, .context = context};
        SLIST_INSERT_HEAD(&answer->waiters, waiter, links);
    }
    if (!is_fresh && !answer->is_asking) {
        begin(answer);
    }
}

const char *ml_page_memory_metrics(const struct ml_page *page) {
    const char *text = page->memory.answers[ML_PAGE_MEMORY_METRICS].text;
    return text != NULL ? text : "";
}

/* ---- /api/v1/memory */

struct question {
    struct ml_page *page;
    struct ml_http_request *request;
    uint64_t after;
};

static void put_readings(FILE *out, const struct ml_page_memory *memory, uint64_t after) {
    const char *joint = "";
    (void)fprintf(out, "{\"last\":%" PRIu64 ",\"readings\":[", memory->last_number);
    for (size_t i = 0; i < memory->kept_count; i++) {
        if (memory->kept[i].number > after) {
            (void)fprintf(out, "%s%s", joint, memory->kept[i].text);
            joint = ",";
        }
    }
    (void)fputs("]}\n", out);
}

static void on_ready(void *context, const char *trouble) {
    struct question *question = context;
    struct ml_page *page = question->page;
    struct ml_http_request *request = question->request;
    const uint64_t after = question->after;
    char *text = NULL;
    size_t bytes = 0;
    free(question);
    if (page->http == NULL) {
        return;
    }
    if (trouble[0] != '\0') {
        ml_page_answer_error(request, 503, "%s", trouble);
        return;
    }
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) {
        ml_page_answer_error(request, 500, "no memory");
        return;
    }
    put_readings(out, &page->memory, after);
    (void)fclose(out);
    ml_page_answer_bytes(request, "application/json", text, bytes);
    free(text);
}

void ml_page_get_memory(struct ml_page *page, struct ml_http_request *request) {
    const char *dump = ml_http_argument(request, "dump");
    uint64_t after = 0;
    if (!ml_page_number_argument(request, "after", UINT32_MAX, &after)) {
        return;
    }
    if (page->engine == NULL || (dump != NULL && dump[0] != '\0' && strcmp(dump, "now") != 0)) {
        ml_page_get_dump_memory(page, request);
        return;
    }
    struct question *question = calloc(1, sizeof(*question));
    if (question == NULL) {
        ml_page_answer_error(request, 500, "no memory");
        return;
    }
    *question = (struct question){.page = page, .request = request, .after = after};
    ml_page_memory_ask(page, ML_PAGE_MEMORY_JSON, false, on_ready, question);
}
