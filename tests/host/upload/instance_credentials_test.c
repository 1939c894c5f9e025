#include "host/upload/instance_credentials.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

START_TEST(an_answer_is_read_whole_or_not_at_all) {
    static const char good[] = "{\"Code\": \"Success\", \"AccessKeyId\": \"ASIA\", "
                               "\"SecretAccessKey\": \"se/cret+\", \"Token\": \"to/ken==\", "
                               "\"Expiration\": \"2026-11-21T23:59:00Z\"}";
    struct ml_s3_credentials credentials;
    struct ml_error_message error = {.text = ""};
    uint64_t end_s = 0;
    ck_assert_int_eq(ml_instance_credentials_parse(good, &credentials, &end_s, &error), ML_OK);
    ck_assert_str_eq(credentials.key_id, "ASIA");
    ck_assert_str_eq(credentials.secret, "se/cret+");
    ck_assert_str_eq(credentials.token, "to/ken==");
    ck_assert_uint_eq(end_s, 1795305540);
}
END_TEST

START_TEST(what_is_no_answer_is_refused_and_not_repeated) {
    static const char *const bad[] = {
        "",
        "<html>s3cret</html>",
        "[]",
        "{\"AccessKeyId\": \"s3cret\"}",
        "{\"AccessKeyId\": \"A\", \"SecretAccessKey\": \"s3cret\"}",
        "{\"AccessKeyId\": \"A\", \"SecretAccessKey\": \"s3cret\", \"Expiration\": \"soon\"}",
        "{\"AccessKeyId\": \"A\", \"SecretAccessKey\": \"s3cret\\r\\nX: y\", "
        "\"Expiration\": \"2026-11-21T23:59:00Z\"}",
        "{\"AccessKeyId\": \"A\", \"SecretAccessKey\": \"s3cret\", \"Token\": \"two words\", "
        "\"Expiration\": \"2026-11-21T23:59:00Z\"}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct ml_s3_credentials credentials;
        struct ml_error_message error = {.text = ""};
        uint64_t end_s = 0;
        ck_assert_int_eq(
            ml_instance_credentials_parse(bad[i], &credentials, &end_s, &error), ML_PEER_FORM
        );
        ck_assert_str_eq(credentials.secret, "");
        ck_assert_ptr_null(strstr(error.text, "s3cret"));
        ck_assert_ptr_nonnull(strstr(error.text, "AccessKeyId"));
    }
}
END_TEST

START_TEST(secrets_are_asked_for_by_https_or_near_by) {
    static const char *const fine[] = {
        "https://example.org/x",
        "http://localhost/x",
        "http://127.0.0.1:8080/x",
        "http://[::1]:80/x",
        "http://169.254.170.2/v2/credentials/1",
        "http://169.254.170.23/v1/credentials",
        "http://[fd00:ec2::23]/v1/credentials",
    };
    static const char *const wrong[] = {
        "http://example.org/x",
        "http://localhost.example.org/",
        "http://127.0.0.1@example.org/",
        "http://169.254.170.2@example.org/",
        "http://127.0.0.1:80@example.org/",
        "ftp://127.0.0.1/",
        "file:///etc/passwd",
        "127.0.0.1",
        "",
    };
    for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++) {
        ck_assert_msg(ml_instance_credentials_may_ask(fine[i]), "%s", fine[i]);
    }
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        ck_assert_msg(!ml_instance_credentials_may_ask(wrong[i]), "%s", wrong[i]);
    }
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("instance_credentials");
    tcase_add_test(cases, an_answer_is_read_whole_or_not_at_all);
    tcase_add_test(cases, what_is_no_answer_is_refused_and_not_repeated);
    tcase_add_test(cases, secrets_are_asked_for_by_https_or_near_by);
    return run_suite("host/instance_credentials", cases);
}
