/* The end of the HTTP server; what it answers is held by tests/e2e/http_test.py. Room: tests. */
#include "host/http/http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>
#include <ev.h>

#include "tests/suite.h"

enum { QUEUE = 8, ANSWER_BYTES = 4096 };

static const char request_text[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";

struct asked {
    struct ev_loop *loop;
    struct ml_http *http;
    unsigned requests;
};

/* Nobody answers: a page waits for what happens next. */
static void on_request(void *context, struct ml_http_request *request) {
    struct asked *asked = context;
    (void)request;
    asked->requests++;
    ev_break(asked->loop, EVBREAK_ALL);
}

static void on_head(void *context, struct ml_http_request *request) {
    (void)context;
    (void)request;
}

static void open_server(struct asked *asked, struct sockaddr_in *out_address) {
    const struct sockaddr_in any = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(*out_address);
    struct ml_error_message error = {.text = ""};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&any, sizeof(any)), 0);
    ck_assert_int_eq(listen(fd, QUEUE), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)out_address, &size), 0);
    asked->loop = ev_default_loop(0);
    const struct ml_http_setup setup = {
        .loop = asked->loop,
        .take_listen_fd = fd,
        .on_head = on_head,
        .on_request = on_request,
        .context = asked,
    };
    ck_assert_int_eq(ml_http_open(&setup, &asked->http, &error), ML_OK);
}

static int connect_to(const struct sockaddr_in *address) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)address, sizeof(*address)), 0);
    return fd;
}

static void ask(int fd) {
    ck_assert_int_eq(send(fd, request_text, strlen(request_text), 0), (int)strlen(request_text));
}

/* Its status; 0: it was hung up on. */
static int status_of(int fd) {
    char answer[ANSWER_BYTES] = "";
    const ssize_t count = recv(fd, answer, sizeof(answer) - 1, 0);
    (void)close(fd);
    return count > 0 ? atoi(answer + strlen("HTTP/1.1 ")) : 0;
}

START_TEST(a_request_that_waits_hears_of_the_end) {
    struct asked asked = {.requests = 0};
    struct sockaddr_in address;
    open_server(&asked, &address);
    const int fd = connect_to(&address);
    ask(fd);
    (void)ev_run(asked.loop, 0);
    ck_assert_uint_eq(asked.requests, 1);
    ml_http_close(asked.http);
    ck_assert_int_eq(status_of(fd), 503);
}
END_TEST

/* libmicrohttpd ends the process where a connection is still suspended. */
START_TEST(a_request_that_comes_at_the_end_does_not_wait) {
    struct asked asked = {.requests = 0};
    struct sockaddr_in address;
    open_server(&asked, &address);
    const int first = connect_to(&address);
    const int second = connect_to(&address);
    const int third = connect_to(&address);
    ask(first);
    (void)ev_run(asked.loop, 0);
    ck_assert_uint_eq(asked.requests, 1);
    /* The server has taken these connections, and has not looked at them since. */
    ask(second);
    ask(third);
    ml_http_close(asked.http);
    ck_assert_uint_eq(asked.requests, 1);
    ck_assert_int_eq(status_of(first), 503);
    (void)status_of(second);
    (void)status_of(third);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("http");
    tcase_add_test(cases, a_request_that_waits_hears_of_the_end);
    tcase_add_test(cases, a_request_that_comes_at_the_end_does_not_wait);
    return run_suite("http", cases);
}
