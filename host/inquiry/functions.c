#include "host/inquiry/functions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <ev.h>

#include "base/descriptor.h"
#include "host/analysis/analyzer.h"
#include "host/process/paths.h"

/* A screen shows some twenty; a filter may look for one of the others. */
#define ROWS_WORD "--limit=1000"

/* Far more than so many rows have. */
enum { TABLE_BYTES_MAX = 16 << 20, WORD_BYTES = 32 };

/* NULL: no memory. */
static char *word_of(const struct ml_pids *pids) {
    char *word = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&word, &count);
    if (out == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < pids->count; i++) {
        (void)fprintf(out, "%s%" PRIu32, i == 0 ? "--pids=" : ",", pids->items[i]);
    }
    if (fclose(out) != 0) {
        free(word);
        return NULL;
    }
    return word;
}

enum ml_status ml_functions_open(
    struct ml_functions *functions,
    const char *path,
    const struct ml_pids *pids,
    struct ml_error_message *error
) {
    *functions = (struct ml_functions){.snapshot_fd = -1};
    if (pids != NULL && pids->count > 0) {
        functions->pids_word = word_of(pids);
        if (functions->pids_word == NULL) {
            ml_error_set(error, "no memory");
            return ML_ENV_MEMORY;
        }
    }
    enum ml_status status = ml_paths_find(ML_ANALYZER_FILE, functions->analyzer_path, error);
    if (status != ML_OK) {
        return status;
    }
    ml_inherited_read(&functions->inherited);
    functions->loop = ev_loop_new(EVFLAG_NOENV);
    if (functions->loop == NULL) {
        ml_error_set(error, "cannot make an event loop: %s", strerror(errno));
        return ML_ENV_SYSTEM;
    }
    const struct ml_analyzer_setup setup = {
        .loop = functions->loop,
        .path = functions->analyzer_path,
        .inherited = &functions->inherited,
    };
    status = ml_analyzer_open(&setup, &functions->analyzer);
    if (status != ML_OK) {
        ml_error_set(error, "%s", ml_status_text(status));
        return status;
    }
    return ml_inquiry_init(&functions->inquiry, path, NULL, NULL, error);
}

void ml_functions_close(struct ml_functions *functions) {
    functions->is_stale = false;
    ml_analyzer_close(functions->analyzer);
    if (functions->loop != NULL) {
        ev_loop_destroy(functions->loop);
    }
    ml_inquiry_fini(&functions->inquiry);
    ml_descriptor_close(&functions->snapshot_fd);
    free(functions->shown.rows);
    free(functions->before.rows);
    free(functions->pids_word);
    *functions = (struct ml_functions){.snapshot_fd = -1};
}

static void end_look(struct ml_functions *functions, const char *trouble) {
    const bool is_stale = functions->is_stale;
    functions->phase = ML_FUNCTIONS_IDLE;
    functions->is_stale = false;
    ml_descriptor_close(&functions->snapshot_fd);
    if (is_stale) {
        ml_functions_ask(functions, functions->wanted_pid);
        return;
    }
    (void)snprintf(functions->trouble, sizeof(functions->trouble), "%s", trouble);
    functions->outcome = trouble[0] == '\0' ? ML_INQUIRY_ANSWERED : ML_INQUIRY_FAILED;
}

/* The text of a file, NUL-terminated. NULL: no memory, or it cannot be read. */
static char *read_text(int fd, uint64_t bytes) {
    char *text = bytes <= TABLE_BYTES_MAX ? malloc((size_t)bytes + 1) : NULL;
    size_t count = 0;
    ssize_t taken = 1;
    while (text != NULL && count < bytes && taken > 0) {
        taken = pread(fd, text + count, (size_t)bytes - count, (off_t)count);
        count += taken > 0 ? (size_t)taken : 0;
    }
    if (text != NULL) {
        text[count] = '\0';
    }
    return text;
}

/* Growth is told of looks at the same process alone. */
static void keep(struct ml_functions *functions, struct ml_functions_look look) {
    free(functions->before.rows);
    functions->before = functions->shown;
    functions->shown = look;
    if (functions->shown_pid != functions->pid) {
        free(functions->before.rows);
        functions->before = (struct ml_functions_look){.rows = NULL};
    }
    functions->shown_pid = functions->pid;
    if (functions->before.rows != NULL) {
        ml_top_functions_growth(
            look.rows, look.count, functions->before.rows, functions->before.count
        );
    }
}

static void on_analyzed(
    void *context,
    enum ml_analyzer_verdict verdict,
    int take_file_fd,
    uint64_t file_bytes,
    const char *trouble
) {
    struct ml_functions *functions = context;
    struct ml_functions_look look = {.rows = NULL};
    char *text = take_file_fd >= 0 ? read_text(take_file_fd, file_bytes) : NULL;
    (void)verdict;
    ml_descriptor_close(&take_file_fd);
    if (text == NULL || !ml_top_functions_read(text, &look.rows, &look.count)) {
        end_look(functions, trouble[0] != '\0' ? trouble : "the profile cannot be read");
    } else {
        if (functions->is_stale) {
            free(look.rows);
        } else {
            keep(functions, look);
        }
        end_look(functions, "");
    }
    free(text);
}

static void analyze(struct ml_functions *functions) {
    char pid_word[WORD_BYTES];
    struct ml_analyzer_job job = {
        .arguments =
            {"report",
             "--by=function",
             "--csv",
             "--metric=live",
             ROWS_WORD,
             ML_ANALYZER_FIRST_PATH,
             functions->pid != 0 ? pid_word : functions->pids_word},
        .first_fd = functions->snapshot_fd,
        .second_fd = -1,
        .on_done = on_analyzed,
        .context = functions,
    };
    (void)snprintf(pid_word, sizeof(pid_word), "--pid=%" PRIu32, functions->pid);
    functions->phase = ML_FUNCTIONS_ANALYSIS;
    functions->outcome = ML_INQUIRY_WAITS;
    ml_analyzer_start(functions->analyzer, &job);
}

void ml_functions_ask(struct ml_functions *functions, uint32_t pid) {
    functions->wanted_pid = pid;
    functions->outcome = ML_INQUIRY_WAITS;
    functions->is_stale = functions->phase != ML_FUNCTIONS_IDLE;
    if (functions->phase != ML_FUNCTIONS_IDLE || functions->inquiry.state == ML_INQUIRY_GONE) {
        return;
    }
    functions->snapshot_fd = memfd_create("memlog-top", MFD_CLOEXEC);
    if (functions->snapshot_fd < 0) {
        end_look(functions, strerror(errno));
        return;
    }
    functions->pid = pid;
    functions->phase = ML_FUNCTIONS_SNAPSHOT;
    ml_inquiry_snapshot(&functions->inquiry, functions->snapshot_fd);
}

static void take_snapshot(struct ml_functions *functions) {
    const enum ml_inquiry_state state = ml_inquiry_turn(&functions->inquiry);
    if (state == ML_INQUIRY_ANSWERED && functions->inquiry.trouble[0] == '\0') {
        analyze(functions);
    } else if (state == ML_INQUIRY_ANSWERED) {
        end_look(functions, functions->inquiry.trouble);
    } else if (state != ML_INQUIRY_WAITS || !functions->inquiry.is_asked) {
        end_look(functions, "memlog did not answer");
    }
}

enum ml_inquiry_state ml_functions_turn(struct ml_functions *functions) {
    if (functions->phase == ML_FUNCTIONS_SNAPSHOT) {
        take_snapshot(functions);
    } else if (functions->phase == ML_FUNCTIONS_ANALYSIS) {
        (void)ev_run(functions->loop, EVRUN_NOWAIT);
    }
    if (functions->inquiry.state == ML_INQUIRY_GONE && functions->phase == ML_FUNCTIONS_IDLE) {
        return ML_INQUIRY_GONE;
    }
    const enum ml_inquiry_state outcome = functions->outcome;
    functions->outcome = ML_INQUIRY_WAITS;
    return outcome;
}
