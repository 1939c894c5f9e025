#include "host/policy/upload_target.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

static struct ml_error_message error;

static enum ml_status parse(const char *text, struct ml_upload_target *target) {
    error.text[0] = '\0';
    return ml_upload_target_parse(text, target, &error);
}

START_TEST(every_kind_of_address_is_known) {
    static const struct {
        const char *text;
        enum ml_upload_kind kind;
        const char *url, *region;
    } cases[] = {
        {"https://host/cr/report", ML_UPLOAD_REPORT, "https://host/cr/report", ""},
        {"http://127.0.0.1:80/", ML_UPLOAD_REPORT, "http://127.0.0.1:80/", ""},
        {"s3://bucket/a/b/", ML_UPLOAD_S3, "s3://bucket/a/b", ""},
        {"s3+http://e:9000/b?region=r-1", ML_UPLOAD_S3, "http://e:9000/b", "r-1"},
        {"pyroscope+https://p/", ML_UPLOAD_PYROSCOPE, "https://p/push.v1.PusherService/Push", ""},
        {"pyroscope-ingest+http://p", ML_UPLOAD_PYROSCOPE_INGEST, "http://p/ingest", ""},
        {"otlp+http://c:4318", ML_UPLOAD_OTLP, "http://c:4318/v1development/profiles", ""},
        {"file:///x/y", ML_UPLOAD_FOLDER, "/x/y", ""},
        {"./reports", ML_UPLOAD_FOLDER, "./reports", ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_upload_target target;
        ck_assert_msg(parse(cases[i].text, &target) == ML_OK, "%s", error.text);
        ck_assert_int_eq(target.kind, cases[i].kind);
        ck_assert_str_eq(target.url, cases[i].url);
        ck_assert_str_eq(target.region, cases[i].region);
    }
}
END_TEST

START_TEST(what_is_no_address_is_refused_and_a_secret_not_repeated) {
    static const char *const wrong[] = {
        "",
        "host",
        "ftp://host/x",
        "https://",
        "https:///x",
        "https://host/a b",
        "https://host/\n",
        "s3+https://endpoint",
        "s3+https://endpoint/",
        "s3://b?acl=public",
        "s3://b?region=",
        "s3://b?region=a:b",
        "file://",
        "https://user:pa55word@host/",
        "otlp+http://pa55word@host",
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct ml_upload_target target;
        ck_assert_msg(parse(wrong[i], &target) != ML_OK, "%s", wrong[i]);
        ck_assert_int_ne(error.text[0], '\0');
        ck_assert_ptr_null(strstr(error.text, "pa55word"));
    }
    struct ml_upload_target target;
    ck_assert_int_eq(parse("https://host/mail@example", &target), ML_OK);
}
END_TEST

START_TEST(an_answer_decides) {
    ck_assert_int_eq(ml_upload_judge(200, 1, false), ML_UPLOAD_DONE);
    ck_assert_int_eq(ml_upload_judge(204, 1, false), ML_UPLOAD_DONE);
    static const unsigned passing[] = {0, 408, 425, 429, 500, 502, 503, 504};
    for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
        ck_assert_int_eq(ml_upload_judge(passing[i], 1, false), ML_UPLOAD_AGAIN);
        ck_assert_int_eq(
            ml_upload_judge(passing[i], ML_UPLOAD_TRIES_MAX, false), ML_UPLOAD_GIVE_UP
        );
    }
    static const unsigned final[] = {301, 302, 307, 400, 401, 403, 404, 410, 422};
    for (size_t i = 0; i < sizeof(final) / sizeof(final[0]); i++) {
        ck_assert_int_eq(ml_upload_judge(final[i], 1, false), ML_UPLOAD_GIVE_UP);
    }
    ck_assert_int_eq(ml_upload_judge(413, 1, false), ML_UPLOAD_HARDER);
    ck_assert_int_eq(ml_upload_judge(413, 2, true), ML_UPLOAD_GIVE_UP);
}
END_TEST

START_TEST(delays_double_with_jitter_and_servers_may_ask_for_more) {
    for (unsigned tries = 1; tries < 40; tries++) {
        uint64_t base_ms = tries <= 12 ? UINT64_C(1000) << (tries - 1) : 3600 * 1000;
        base_ms = base_ms < 3600 * 1000 ? base_ms : 3600 * 1000;
        ck_assert_uint_eq(ml_upload_delay_ms(tries, "", 0, 0), base_ms / 2);
        ck_assert_uint_le(ml_upload_delay_ms(tries, NULL, 0, UINT32_MAX), base_ms * 3 / 2);
    }
    ck_assert_uint_eq(ml_upload_delay_ms(1, "120", 0, 0), 120000);
    ck_assert_uint_eq(ml_upload_delay_ms(1, "999999999", 0, 0), 24 * 3600 * 1000);
    /* 784111777 is that date. */
    ck_assert_uint_eq(ml_upload_delay_ms(1, "Sun, 06 Nov 1994 08:49:37 GMT", 784111717, 0), 60000);
    ck_assert_uint_eq(ml_upload_delay_ms(1, "Sun, 06 Nov 1994 08:49:37 GMT", 784111999, 0), 500);
    ck_assert_uint_eq(ml_upload_delay_ms(1, "soon", 0, 0), 500);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("upload_target");
    tcase_add_test(cases, every_kind_of_address_is_known);
    tcase_add_test(cases, what_is_no_address_is_refused_and_a_secret_not_repeated);
    tcase_add_test(cases, an_answer_decides);
    tcase_add_test(cases, delays_double_with_jitter_and_servers_may_ask_for_more);
    return run_suite("host/upload_target", cases);
}
