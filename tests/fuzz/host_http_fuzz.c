/* Requests to the live page's server, cut into pieces (the first byte says how long), and what its
 * guard makes of their headers: nobody who does not know the tokens may do anything. */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <ev.h>

#include "host/http/http.h"
#include "host/policy/page_guard.h"
#include "tests/fuzz/fuzz.h"

enum { INPUT_MAX_BYTES = 4096, TURNS_MAX = 50, TEXT_MAX_BYTES = 64 * 1024 };

static struct ev_loop *loop;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static socklen_t address_bytes;
static struct ml_page_guard guard;
static int answered;

static struct ml_page_claim claim_of(struct ml_http_request *request) {
    return (struct ml_page_claim
    ){.host = ml_http_header(request, "Host"),
      .authorization = ml_http_header(request, "Authorization"),
      .query_token = ml_http_argument(request, "token"),
      .cookies = ml_http_header(request, "Cookie"),
      .origin = ml_http_header(request, "Origin"),
      .fetch_site = ml_http_header(request, "Sec-Fetch-Site"),
      .page_token = ml_http_header(request, "X-Memlog-Token")};
}

static void on_head(void *context, struct ml_http_request *request) {
    (void)context;
    const struct ml_page_claim claim = claim_of(request);
    if (!ml_page_guard_knows_host(&guard, claim.host) ||
        !ml_page_guard_is_own_site(&guard, &claim)) {
        const struct ml_http_answer no = {
            .status = 403, .content_type = "text/plain", .bytes = "no", .bytes_count = 2};
        ml_http_answer(request, &no);
        answered++;
    }
}

static void on_request(void *context, struct ml_http_request *request) {
    (void)context;
    const struct ml_page_claim claim = claim_of(request);
    REQUIRE(ml_page_guard_proof(&guard, &claim) == ML_PAGE_PROOF_NONE);
    REQUIRE(!ml_page_guard_may_act(&guard, &claim));
    const char *path = ml_http_path(request);
    REQUIRE(ml_http_method(request) != NULL && path != NULL);
    REQUIRE(strlen(path) < TEXT_MAX_BYTES);
    const struct ml_http_answer answer = {
        .status = 200, .content_type = "text/plain", .bytes = path, .bytes_count = strlen(path)};
    ml_http_answer(request, &answer);
    answered++;
}

static void serve(void) {
    struct ml_http *http = NULL;
    struct ml_error_message error = {{0}};
    const struct ml_page_place place = {0};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    /* A name without a file, which nobody else has. */
    address_bytes =
        (socklen_t)offsetof(struct sockaddr_un, sun_path) +
        (socklen_t)snprintf(
            address.sun_path + 1, sizeof(address.sun_path) - 1, "memlog-fuzz-%d", (int)getpid()
        ) +
        1;
    REQUIRE(fd >= 0 && bind(fd, (const struct sockaddr *)&address, address_bytes) == 0);
    REQUIRE(listen(fd, 16) == 0);
    loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    REQUIRE(loop != NULL && ml_page_guard_init(&guard, &place) == ML_OK);
    const struct ml_http_setup setup = {
        .loop = loop, .take_listen_fd = fd, .on_head = on_head, .on_request = on_request};
    REQUIRE(ml_http_open(&setup, &http, &error) == ML_OK);
}

/* What came back so far. False: the server has closed. */
static bool drain(int fd, char first[5], size_t *count_bytes) {
    char bytes[4096];
    for (;;) {
        const ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
        if (got <= 0) {
            return got < 0 && errno == EAGAIN;
        }
        for (ssize_t i = 0; i < got && *count_bytes < 5; i++) {
            first[(*count_bytes)++] = bytes[i];
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    if (loop == NULL) {
        serve();
    }
    if (count_bytes < 2 || count_bytes > INPUT_MAX_BYTES) {
        return 0;
    }
    const size_t piece = (size_t)data[0] * 8 + 1;
    char first[5];
    size_t first_bytes = 0;
    bool open = true;
    answered = 0;
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(fd >= 0 && connect(fd, (const struct sockaddr *)&address, address_bytes) == 0);
    for (size_t at = 1; at < count_bytes && open; at += piece) {
        const size_t part = count_bytes - at < piece ? count_bytes - at : piece;
        open = send(fd, data + at, part, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)part;
        (void)ev_run(loop, EVRUN_NOWAIT);
        open = drain(fd, first, &first_bytes) && open;
    }
    (void)shutdown(fd, SHUT_WR);
    for (int turn = 0; turn < TURNS_MAX && open; turn++) {
        (void)ev_run(loop, EVRUN_NOWAIT);
        open = drain(fd, first, &first_bytes);
    }
    /* Whoever was answered got an answer, and nothing else was said. */
    REQUIRE(first_bytes == 0 || (first_bytes == 5 && memcmp(first, "HTTP/", 5) == 0));
    (void)close(fd);
    (void)ev_run(loop, EVRUN_NOWAIT);
    return 0;
}
