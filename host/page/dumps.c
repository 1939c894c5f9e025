/* The dumps of the run, or of ended ones: list, make, hand out. Room: host. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "host/engine/engine.h"
#include "host/page/internal.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

/* Digits of an id as it stands first in a dump's name, at least; pids that one dump is asked of. */
enum { ID_DIGITS = 4, ID_DIGITS_MAX = 10, DUMP_PIDS_MAX = 1024 };

const char *ml_page_folder(const struct ml_page *page) {
    if (page->setup.folder != NULL) {
        return page->setup.folder;
    }
    int fd = -1;
    return page->engine != NULL ? ml_engine_dumps_folder(page->engine, &fd) : "";
}

/* How many digits stand first in NNNN.REASON.pftrace; 0: it is no dump's name. */
static size_t id_digits(const char *name) {
    const size_t digits = strspn(name, "0123456789");
    const size_t count = strlen(name);
    const size_t suffix = strlen(ML_DUMP_SUFFIX);
    const bool is_dump = digits >= ID_DIGITS && digits <= ID_DIGITS_MAX && name[digits] == '.' &&
                         count > digits + suffix &&
                         strcmp(name + count - suffix, ML_DUMP_SUFFIX) == 0;
    return is_dump ? digits : 0;
}

static void append_dump(
    const struct ml_page *page, json_t *list, DIR *folder, const char *name, size_t digits
) {
    struct stat about;
    if (fstatat(dirfd(folder), name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode)) {
        return;
    }
    const char *reason = name + digits + 1;
    const size_t count = strlen(reason) - strlen(ML_DUMP_SUFFIX);
    json_t *json = json_object();
    (void)json_object_set_new(json, "id", ml_page_text(name, digits));
    ml_page_set_text(json, "file", name);
    (void)json_object_set_new(json, "reason", ml_page_text(reason, count));
    if (page->engine != NULL) {
        const uint32_t number = (uint32_t)strtoul(name, NULL, 10);
        ml_page_set_text(json, "words", ml_engine_dump_words(page->engine, number));
    }
    ml_page_set_number(json, "bytes", (uint64_t)about.st_size);
    ml_page_set_number(
        json,
        "time_ms",
        (uint64_t)about.st_mtim.tv_sec * 1000 + (uint64_t)about.st_mtim.tv_nsec / 1000000
    );
    (void)json_array_append_new(list, json);
}

/* The run's own folder is read by its descriptor, even if its name has changed. */
static DIR *open_folder(const struct ml_page *page) {
    const char *path = ml_page_folder(page);
    int own_fd = -1;
    if (page->setup.folder == NULL && page->engine != NULL) {
        (void)ml_engine_dumps_folder(page->engine, &own_fd);
    }
    const int fd = openat(
        own_fd >= 0 ? own_fd : AT_FDCWD,
        own_fd >= 0 ? "." : path,
        O_RDONLY | O_DIRECTORY | O_CLOEXEC
    );
    DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
    if (folder == NULL && fd >= 0) {
        (void)close(fd);
    }
    return folder;
}

static int later_names(const struct dirent **left, const struct dirent **right) {
    return strcmp((*left)->d_name, (*right)->d_name);
}

static int is_dump_entry(const struct dirent *entry) {
    return id_digits(entry->d_name) > 0;
}

void ml_page_get_dumps(struct ml_page *page, struct ml_http_request *request) {
    json_t *answer = json_object();
    json_t *list = json_array();
    DIR *folder = open_folder(page);
    struct dirent **entries = NULL;
    int count =
        folder != NULL ? scandirat(dirfd(folder), ".", &entries, is_dump_entry, later_names) : 0;
    for (int i = 0; i < count; i++) {
        append_dump(page, list, folder, entries[i]->d_name, id_digits(entries[i]->d_name));
        free(entries[i]);
    }
    free(entries);
    if (folder != NULL) {
        (void)closedir(folder);
    }
    ml_page_set_text(answer, "folder", ml_page_folder(page));
    (void)json_object_set_new(answer, "dumps", list);
    ml_page_answer_json(request, 200, answer);
}

int ml_page_open_dump(const struct ml_page *page, const char *id, char out_name[NAME_MAX + 1]) {
    const size_t id_count = strlen(id);
    int fd = -1;
    if (strspn(id, "0123456789") != id_count || id_count < ID_DIGITS) {
        return -1;
    }
    DIR *folder = open_folder(page);
    if (folder == NULL) {
        return -1;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL && fd < 0; entry = readdir(folder)) {
        if (id_digits(entry->d_name) == id_count && strncmp(entry->d_name, id, id_count) == 0) {
            fd = openat(
                dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
            );
            (void)snprintf(out_name, NAME_MAX + 1, "%s", entry->d_name);
        }
    }
    (void)closedir(folder);
    struct stat about;
    if (fd >= 0 && (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* A format of memlog convert, and what a browser is told of it. */
struct form {
    const char *name;
    const char *content_type;
    const char *suffix;
    bool has_metric;
    bool has_order; /* of frames */
};

static const struct form forms[] = {
    {"pprof", "application/octet-stream", ".pb.gz", false, false},
    {"heap", "text/plain; charset=utf-8", ".heap", false, false},
    {"chrome", "application/gzip", ".json.gz", true, false},
    {"collapsed", "text/plain; charset=utf-8", ".collapsed.txt", true, true},
    {"sqlite", "application/vnd.sqlite3", ".sqlite", false, false},
    {"json", "application/json", ".json", false, false},
    {"html", "text/html; charset=utf-8", ".html", true, true},
};

static void
answer_whole_file(struct ml_http_request *request, int take_fd, const char *disposition) {
    struct stat about;
    if (fstat(take_fd, &about) != 0) {
        ml_page_answer_error(request, 500, "%s", strerror(errno));
        (void)close(take_fd);
        return;
    }
    const struct ml_http_answer answer = {
        .status = 200,
        .content_type = "application/octet-stream",
        .is_file = true,
        .take_file_fd = take_fd,
        .file_bytes = (uint64_t)about.st_size,
        .disposition = disposition,
    };
    ml_http_answer(request, &answer);
}

bool ml_page_is_metric(const char *text) {
    static const char *const metrics[] = {"live", "peak", "total", "resident", "waste", "alone"};
    bool is_one = false;

    for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
        is_one = is_one || strcmp(text, metrics[i]) == 0;
    }
    return is_one;
}

bool ml_page_order_argument(struct ml_http_request *request, const char **out_order) {
    static const char *const orders[] = {
        "type",
        "heap",
        "scope",
        "heap,type",
        "backtrace,type",
        "backtrace,heap",
        "backtrace,scope"};
    const char *text = ml_http_argument(request, "by");
    bool is_one = text == NULL || text[0] == '\0';

    *out_order = is_one ? NULL : text;
    for (size_t i = 0; !is_one && i < sizeof(orders) / sizeof(orders[0]); i++) {
        is_one = strcmp(text, orders[i]) == 0;
    }
    if (!is_one) {
        ml_page_answer_error(
            request,
            400,
            "by=%.20s: type, heap, scope, heap,type, backtrace,type, backtrace,heap or "
            "backtrace,scope is wanted",
            text
        );
    }
    return is_one;
}

static void convert_dump(
    struct ml_page *page,
    struct ml_http_request *request,
    const struct form *form,
    int fd,
    const char *name
) {
    char to[32];
    char pid[32] = "";
    char metric[32] = "";
    char order[32] = "";
    const char *order_text = NULL;
    char file_name[NAME_MAX + 32];
    uint64_t pid_number = 0;
    const char *metric_text = ml_http_argument(request, "metric");
    if (!ml_page_number_argument(request, "pid", INT_MAX, &pid_number) ||
        !ml_page_order_argument(request, &order_text)) {
        return;
    }
    if (order_text != NULL && !form->has_order) {
        ml_page_answer_error(request, 400, "by= is of collapsed or html");
        return;
    }
    if (metric_text != NULL && (!form->has_metric || !ml_page_is_metric(metric_text))) {
        ml_page_answer_error(
            request,
            400,
            "metric=%.20s: live, peak, total, resident, waste or alone, of chrome, collapsed or "
            "html",
            metric_text
        );
        return;
    }
    (void)snprintf(to, sizeof(to), "--to=%s", form->name);
    (void)snprintf(
        file_name,
        sizeof(file_name),
        "%.*s%s",
        (int)(strlen(name) - strlen(ML_DUMP_SUFFIX)),
        name,
        form->suffix
    );
    const char *arguments[7] = {"convert", to};
    size_t count = 2;
    if (pid_number != 0) {
        (void)snprintf(pid, sizeof(pid), "--pid=%" PRIu64, pid_number);
        arguments[count++] = pid;
    }
    if (metric_text != NULL) {
        (void)snprintf(metric, sizeof(metric), "--metric=%s", metric_text);
        arguments[count++] = metric;
    }
    if (order_text != NULL) {
        (void)snprintf(order, sizeof(order), "--by=%s", order_text);
        arguments[count++] = order;
    }
    arguments[count] = ML_ANALYZER_FIRST_PATH;
    ml_page_convert(page, request, fd, arguments, form->content_type, file_name);
}

void ml_page_get_dump(struct ml_page *page, struct ml_http_request *request) {
    const char *id = strrchr(ml_http_path(request), '/') + 1;
    char name[NAME_MAX + 1] = "";
    char disposition[NAME_MAX + 64];
    const char *format = ml_http_argument(request, "format");
    int fd = ml_page_open_dump(page, id, name);
    if (fd < 0) {
        ml_page_answer_error(request, 404, "there is no dump %.40s; /api/v1/dumps lists them", id);
        return;
    }
    if (format == NULL || strcmp(format, "perfetto") == 0) {
        (void)snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"", name);
        answer_whole_file(request, fd, disposition);
        return;
    }
    const struct form *form = NULL;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && form == NULL; i++) {
        form = strcmp(forms[i].name, format) == 0 ? &forms[i] : NULL;
    }
    if (form != NULL) {
        convert_dump(page, request, form, fd, name);
    } else {
        ml_page_answer_error(
            request,
            400,
            "format=%.20s: perfetto, pprof, heap, chrome, collapsed, sqlite, json or html is "
            "wanted",
            format
        );
    }
    (void)close(fd);
}

/* ---- make one */

static void on_dumped(void *context, const char *path, bool complete, const char *trouble) {
    struct ml_http_request *request = ml_page_asked(context);
    if (request == NULL) {
        return;
    }
    if (path[0] == '\0') {
        ml_page_answer_error(request, 409, "no dump was taken: %s", trouble);
        return;
    }
    const char *name = basename(path);
    json_t *answer = json_object();
    (void)json_object_set_new(answer, "id", ml_page_text(name, id_digits(name)));
    ml_page_set_text(answer, "file", name);
    ml_page_set_text(answer, "path", path);
    ml_page_set_bool(answer, "complete", complete);
    ml_page_set_text(answer, "trouble", trouble);
    ml_page_answer_json(request, 201, answer);
}

/* "1,2,3". False: it was answered. */
static bool
pids_of(struct ml_http_request *request, uint32_t out_pids[DUMP_PIDS_MAX], size_t *out_count) {
    const char *text = ml_http_argument(request, "pid");
    *out_count = 0;
    while (text != NULL && *text != '\0') {
        char number[16];
        uint64_t pid = 0;
        const size_t count = strcspn(text, ",");
        (void)snprintf(number, sizeof(number), "%.*s", (int)count, text);
        if (*out_count == DUMP_PIDS_MAX || !ml_count_read(number, INT_MAX, &pid)) {
            ml_page_answer_error(
                request, 400, "pid=: up to %d process ids with commas between", DUMP_PIDS_MAX
            );
            return false;
        }
        out_pids[(*out_count)++] = (uint32_t)pid;
        text += count + (text[count] == ',');
    }
    return true;
}

bool ml_page_dump_request_of(
    struct ml_http_request *request, struct ml_engine_dump_request *wanted
) {
    struct ml_error_message error = {.text = ""};
    const char *role = ml_http_argument(request, "role");
    const char *words = ml_http_argument(request, "reason");
    wanted->has_role = role != NULL && role[0] != '\0';
    if (wanted->has_role && ml_role_parse(role, &wanted->role, &error) != ML_OK) {
        ml_page_answer_error(request, 400, "role=: %s", error.text);
        return false;
    }
    wanted->words = words;
    wanted->words_bytes = words != NULL ? strlen(words) : 0;
    if (wanted->words_bytes > MEMLOG_HOST_DUMP_REQUEST_REASON_LIMIT) {
        ml_page_answer_error(
            request, 400, "reason=: at most %d bytes", MEMLOG_HOST_DUMP_REQUEST_REASON_LIMIT
        );
        return false;
    }
    return true;
}

void ml_page_post_dumps(struct ml_page *page, struct ml_http_request *request) {
    uint32_t pids[DUMP_PIDS_MAX];
    size_t count = 0;
    if (!pids_of(request, pids, &count)) {
        return;
    }
    struct ml_engine_dump_request wanted = {
        .reason = MEMLOG_SERVICE_DUMP_REASON_PAGE, .pids = pids, .pids_count = count};
    if (!ml_page_dump_request_of(request, &wanted)) {
        return;
    }
    struct ml_page_question *question = ml_page_ask(page, request);
    if (question != NULL) {
        ml_engine_request_dump(page->engine, &wanted, on_dumped, question);
    }
}
