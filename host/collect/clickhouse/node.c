#include "host/collect/clickhouse/node.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CONNECT_MS = 2000,
    WHOLE_MS = 120000,
    ANSWER_BYTES_MAX = 512 << 20,
    TARGET_BYTES = 2048,
    SAID_BYTES = 300 /* of what a server says of an error */
};

/* ---- what the user says */

static bool is_name(const char *text) {
    size_t count = 0;
    while (isalnum((unsigned char)text[count]) || text[count] == '_') {
        count++;
    }
    return count > 0 && text[count] == '\0' && !isdigit((unsigned char)text[0]);
}

/* One URL, taken apart. False: `error` says why. */
static bool
read_url(struct ml_click_nodes *nodes, const char *url, struct ml_error_message *error) {
    struct ml_click_node *node = &nodes->list[nodes->count];
    const char *scheme_end = strstr(url, "://");
    const bool is_http =
        scheme_end != NULL && (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0);
    if (!is_http || scheme_end[3] == '\0' || strpbrk(url, "?#\"\\ ") != NULL) {
        ml_error_set(error, "a node of ClickHouse is http://HOST[:PORT][/DATABASE]");
        return false;
    }
    if (strchr(url, '@') != NULL) {
        ml_error_set(
            error, "a URL is told in messages: give user and password by --store-auth=FILE"
        );
        return false;
    }
    const char *path = strchr(scheme_end + 3, '/');
    const char *database = path != NULL && path[1] != '\0' ? path + 1 : "memlog";
    if (!is_name(database) || strlen(database) >= sizeof(nodes->database)) {
        ml_error_set(error, "a database's name is of letters, digits and '_'");
        return false;
    }
    if (nodes->count > 0 && strcmp(nodes->database, database) != 0) {
        ml_error_set(error, "all nodes have the same database");
        return false;
    }
    (void)snprintf(nodes->database, sizeof(nodes->database), "%s", database);
    (void)snprintf(
        node->url,
        sizeof(node->url),
        "%.*s",
        path != NULL ? (int)(path - url) : (int)strlen(url),
        url
    );
    for (size_t i = 0; i < nodes->count; i++) {
        if (strcmp(nodes->list[i].url, node->url) == 0) {
            ml_error_set(error, "%s stands there twice", node->url);
            return false;
        }
    }
    nodes->count++;
    return true;
}

static bool
read_urls(struct ml_click_nodes *nodes, const char *urls, struct ml_error_message *error) {
    bool done = true;
    for (const char *at = urls; done && at != NULL;) {
        char url[ML_CLICK_URL_BYTES];
        const char *comma = strchr(at, ',');
        const size_t count = comma != NULL ? (size_t)(comma - at) : strlen(at);
        if (count >= sizeof(url) || nodes->count == ML_CLICK_NODES_MAX) {
            ml_error_set(error, "a URL is too long, or there are too many");
            return false;
        }
        memcpy(url, at, count);
        url[count] = '\0';
        done = read_url(nodes, url, error);
        at = comma != NULL ? comma + 1 : NULL;
    }
    return done;
}

/* USER PASSWORD, of a file that others may not read. */
static bool
read_login(struct ml_click_nodes *nodes, const char *path, struct ml_error_message *error) {
    char line[sizeof(nodes->login)];
    struct stat about;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd >= 0 && fstat(fd, &about) == 0 ? read(fd, line, sizeof(line) - 1) : -1;
    const int number = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (count < 0) {
        ml_error_set(error, "%s: %s", path, strerror(number));
        return false;
    }
    if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        ml_error_set(error, "%s: others may read it; chmod 600", path);
        return false;
    }
    line[count] = '\0';
    line[strcspn(line, "\r\n")] = '\0';
    char *space = strchr(line, ' ');
    if (space == NULL || space == line || strchr(line, ':') != NULL) {
        ml_error_set(error, "%s: it is one line, USER PASSWORD, without a colon", path);
        return false;
    }
    *space = ':';
    (void)snprintf(nodes->login, sizeof(nodes->login), "%s", line);
    explicit_bzero(line, sizeof(line));
    return true;
}

enum ml_status ml_click_nodes_init(
    struct ml_click_nodes *nodes,
    const char *urls,
    const char *login_path,
    struct ml_error_message *error
) {
    *nodes = (struct ml_click_nodes){.count = 0};
    if (!read_urls(nodes, urls, error) ||
        (login_path != NULL && !read_login(nodes, login_path, error))) {
        return ML_ENV_MISSING;
    }
    if (!ml_curl_api_load(&nodes->api)) {
        ml_error_set(
            error, "ClickHouse is spoken to by libcurl, which is not there: install libcurl4"
        );
        return ML_ENV_MISSING;
    }
    nodes->easy = nodes->api.easy_init();
    if (nodes->easy == NULL) {
        ml_error_set(error, "memory ran out");
        return ML_ENV_MISSING;
    }
    return ML_OK;
}

void ml_click_nodes_fini(struct ml_click_nodes *nodes) {
    if (nodes->easy != NULL) {
        nodes->api.easy_cleanup(nodes->easy);
    }
    explicit_bzero(nodes->login, sizeof(nodes->login));
    nodes->easy = NULL;
}

/* ---- calls */

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context) {
    struct ml_click_answer *answer = context;
    const size_t more = size * count;
    if (answer->bytes + more + 1 > answer->capacity) {
        size_t wanted = answer->capacity > 0 ? answer->capacity : 4096;
        while (wanted < answer->bytes + more + 1) {
            wanted *= 2;
        }
        char *grown = wanted <= ANSWER_BYTES_MAX ? realloc(answer->text, wanted) : NULL;
        if (grown == NULL) {
            return 0;
        }
        answer->text = grown;
        answer->capacity = wanted;
    }
    memcpy(answer->text + answer->bytes, bytes, more);
    answer->bytes += more;
    answer->text[answer->bytes] = '\0';
    return more;
}

/* libcurl asks now and then whether to go on. */
static int on_progress(void *context, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    const struct ml_click_nodes *nodes = context;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return atomic_load(&nodes->is_interrupted);
}

struct call {
    const char *target; /* behind the URL */
    const void *body;
    size_t body_bytes;
    bool is_insert;
};

static CURLcode
perform(struct ml_click_nodes *nodes, size_t node, struct call call, struct ml_click_answer *out) {
    const struct ml_curl_api *api = &nodes->api;
    char url[ML_CLICK_URL_BYTES + TARGET_BYTES];
    (void)snprintf(url, sizeof(url), "%s%s", nodes->list[node].url, call.target);
    struct curl_slist *headers = api->slist_append(NULL, "Expect:");
    nodes->curl_error[0] = '\0';
    const struct {
        CURLoption option;
        long number;
    } numbers[] = {
        {CURLOPT_NOSIGNAL, 1},
        {CURLOPT_POST, 1},
        {CURLOPT_NOPROGRESS, 0},
        {CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS},
        {CURLOPT_TIMEOUT_MS, nodes->whole_ms > 0 ? nodes->whole_ms : WHOLE_MS},
        {CURLOPT_FOLLOWLOCATION, 0},
        {CURLOPT_FRESH_CONNECT, call.is_insert},
    };
    CURLcode code = headers != NULL ? CURLE_OK : CURLE_OUT_OF_MEMORY;
    if (atomic_load(&nodes->is_interrupted)) {
        code = CURLE_ABORTED_BY_CALLBACK;
    }
    for (size_t i = 0; code == CURLE_OK && i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        code = api->easy_setopt(nodes->easy, numbers[i].option, numbers[i].number);
    }
    const struct {
        CURLoption option;
        const void *value;
    } values[] = {
        {CURLOPT_URL, url},
        {CURLOPT_PROXY, ""},
        {CURLOPT_ERRORBUFFER, nodes->curl_error},
        {CURLOPT_HTTPHEADER, headers},
        {CURLOPT_WRITEDATA, out},
        {CURLOPT_XFERINFODATA, nodes},
        {CURLOPT_POSTFIELDS, call.body},
        {CURLOPT_USERPWD, nodes->login[0] != '\0' ? nodes->login : NULL},
    };
    for (size_t i = 0; code == CURLE_OK && i < sizeof(values) / sizeof(values[0]); i++) {
        code = api->easy_setopt(nodes->easy, values[i].option, values[i].value);
    }
    if (code == CURLE_OK) {
        code =
            api->easy_setopt(nodes->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call.body_bytes);
    }
    if (code == CURLE_OK) {
        code = api->easy_setopt(nodes->easy, CURLOPT_WRITEFUNCTION, on_bytes);
    }
    if (code == CURLE_OK) {
        code = api->easy_setopt(nodes->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    }
    if (code == CURLE_OK) {
        code = api->easy_perform(nodes->easy);
    }
    api->slist_free_all(headers);
    return code;
}

static enum ml_status do_call(
    struct ml_click_nodes *nodes,
    size_t node,
    struct call call,
    struct ml_click_answer *out,
    struct ml_error_message *error
) {
    enum { HTTP_OK = 200 };
    *out = (struct ml_click_answer){.text = NULL};
    const CURLcode code = perform(nodes, node, call, out);
    long status = 0;
    (void)nodes->api.easy_getinfo(nodes->easy, CURLINFO_RESPONSE_CODE, &status);
    out->was_reached = code == CURLE_OK;
    if (code == CURLE_OK && status == HTTP_OK) {
        return ML_OK;
    }
    if (code != CURLE_OK) {
        ml_error_set(
            error,
            "%s: %s",
            nodes->list[node].url,
            nodes->curl_error[0] != '\0' ? nodes->curl_error : nodes->api.easy_strerror(code)
        );
    } else {
        const char *said = out->text != NULL ? out->text : "";
        ml_error_set(
            error,
            "%s: it says %ld: %.*s",
            nodes->list[node].url,
            status,
            (int)strnlen(said, SAID_BYTES),
            said
        );
    }
    free(out->text);
    out->text = NULL;
    return ML_ENV_SYSTEM;
}

enum ml_status ml_click_ask(
    struct ml_click_nodes *nodes,
    size_t node,
    const char *sql,
    const char *settings,
    struct ml_click_answer *out_answer,
    struct ml_error_message *error
) {
    char target[TARGET_BYTES];
    /* Whole before the first byte of it is sent: an error in the middle is no rows. */
    (void)snprintf(
        target,
        sizeof(target),
        "/?wait_end_of_query=1%s%s%s",
        nodes->list[node].is_prepared ? "&database=" : "",
        nodes->list[node].is_prepared ? nodes->database : "",
        settings
    );
    const struct call call = {.target = target, .body = sql, .body_bytes = strlen(sql)};
    return do_call(nodes, node, call, out_answer, error);
}

enum ml_status ml_click_do(
    struct ml_click_nodes *nodes, size_t node, const char *sql, struct ml_error_message *error
) {
    struct ml_click_answer answer;
    const enum ml_status status = ml_click_ask(nodes, node, sql, "", &answer, error);
    free(answer.text);
    return status;
}

enum ml_status ml_click_number(
    struct ml_click_nodes *nodes,
    size_t node,
    const char *sql,
    uint64_t *out_number,
    struct ml_error_message *error
) {
    struct ml_click_answer answer;
    enum ml_status status = ml_click_ask(nodes, node, sql, "", &answer, error);
    if (status == ML_OK) {
        char *end = NULL;
        *out_number = answer.text != NULL ? strtoull(answer.text, &end, 10) : 0;
        if (end == NULL || end == answer.text) {
            ml_error_set(error, "%s: no number came", nodes->list[node].url);
            status = ML_ENV_SYSTEM;
        }
    }
    free(answer.text);
    return status;
}

enum ml_status ml_click_change(
    struct ml_click_nodes *nodes,
    size_t node,
    const char *change,
    const char *left,
    const char *doing,
    struct ml_error_message *error
) {
    enum { LOOKS = 600, PAUSE_NS = 100000000 };
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    uint64_t count = 0;
    enum ml_status status = ml_click_number(nodes, node, left, &count, error);
    if (status == ML_OK && count > 0) {
        status = ml_click_do(nodes, node, change, error);
    }
    for (unsigned i = 0; status == ML_OK && count > 0; i++) {
        if (i == LOOKS) {
            ml_error_set(error, "%s: %s", nodes->list[node].url, doing);
            return ML_ENV_SYSTEM;
        }
        (void)nanosleep(&pause, NULL);
        status = ml_click_number(nodes, node, left, &count, error);
    }
    return status;
}

enum ml_status ml_click_insert(
    struct ml_click_nodes *nodes,
    size_t node,
    const char *table,
    const char *query_id,
    const void *bytes,
    size_t count,
    struct ml_error_message *error
) {
    char target[TARGET_BYTES];
    struct ml_click_answer answer;
    (void)snprintf(
        target,
        sizeof(target),
        "/?database=%s&query_id=%s&query=INSERT%%20INTO%%20%s%%20FORMAT%%20Native",
        nodes->database,
        query_id,
        table
    );
    const struct call call = {
        .target = target, .body = bytes, .body_bytes = count, .is_insert = true};
    const enum ml_status status = do_call(nodes, node, call, &answer, error);
    free(answer.text);
    return status;
}
