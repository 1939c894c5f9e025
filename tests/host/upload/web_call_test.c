#include "host/upload/web_call.h"

#include <check.h>
#include <ev.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

static struct ml_curl_api api;
static struct ev_loop *loop;
static unsigned calls;
static struct ml_web_answer last;

static void set_up(void) {
    ck_assert(ml_curl_api_load(&api));
    loop = ev_loop_new(EVFLAG_AUTO);
    ck_assert_ptr_nonnull(loop);
    calls = 0;
}

static void tear_down(void) {
    ev_loop_destroy(loop);
}

static void on_done(void *context, const struct ml_web_answer *answer) {
    (void)context;
    calls++;
    last = *answer;
}

/* Port 9 of loopback: nobody answers there. */
static const struct ml_web_request nobody = {
    .method = "POST",
    .url = "http://127.0.0.1:9/",
    .body = "x",
    .body_bytes = 1,
    .direct = true,
    .connect_timeout_s = 60,
    .whole_timeout_s = 60};

START_TEST(who_asks_in_vain_is_told_so_once) {
    struct ml_web_call *call = ml_web_call_new(&api, loop);
    ml_web_call_header(call, "X: y");
    ml_web_call_start(call, &nobody, on_done, NULL);
    ev_run(loop, 0); /* nothing of it is left on the loop */
    ck_assert_uint_eq(calls, 1);
    ck_assert_uint_eq(last.status, 0);
    ck_assert_ptr_nonnull(strstr(last.trouble, "connect"));
    ml_web_call_start(call, &nobody, on_done, NULL);
    ev_run(loop, 0);
    ck_assert_uint_eq(calls, 2);
    ml_web_call_free(call);
}
END_TEST

START_TEST(one_that_is_dropped_calls_nobody) {
    struct ml_web_call *call = ml_web_call_new(&api, loop);
    ml_web_call_start(call, &nobody, on_done, NULL);
    ml_web_call_free(call);
    ev_run(loop, 0);
    ck_assert_uint_eq(calls, 0);
    ml_web_call_free(NULL);
}
END_TEST

START_TEST(another_protocol_than_http_is_not_spoken) {
    struct ml_web_call *call = ml_web_call_new(&api, loop);
    struct ml_web_request request = nobody;
    request.method = "GET";
    request.url = "file:///etc/passwd";
    ml_web_call_start(call, &request, on_done, NULL);
    ev_run(loop, 0);
    ck_assert_uint_eq(calls, 1);
    ck_assert_uint_eq(last.status, 0);
    ck_assert_uint_eq(last.body_bytes, 0);
    ml_web_call_free(call);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("web_call");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, who_asks_in_vain_is_told_so_once);
    tcase_add_test(cases, one_that_is_dropped_calls_nobody);
    tcase_add_test(cases, another_protocol_than_http_is_not_spoken);
    return run_suite("host/web_call", cases);
}
