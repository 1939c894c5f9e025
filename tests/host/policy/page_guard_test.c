#include "host/policy/page_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_page_guard guard_at(const char *place_text) {
    struct ml_error_message error = {.text = ""};
    struct ml_page_place place;
    struct ml_page_guard guard;
    ck_assert_int_eq(ml_page_place_parse(place_text, &place, &error), ML_OK);
    ck_assert_int_eq(ml_page_guard_init(&guard, &place), ML_OK);
    return guard;
}

START_TEST(tokens_are_new_each_time_and_told_by_the_whole) {
    const struct ml_page_guard one = guard_at("80");
    const struct ml_page_guard two = guard_at("80");
    ck_assert_uint_eq(strlen(one.token), ML_PAGE_TOKEN_BYTES - 1);
    ck_assert_uint_eq(strlen(one.page_token), ML_PAGE_TOKEN_BYTES - 1);
    ck_assert_str_ne(one.token, two.token);
    ck_assert_str_ne(one.token, one.page_token);
    ck_assert(ml_page_guard_same("abc", "abc", 3));
    ck_assert(!ml_page_guard_same("abc", "ab", 2));
    ck_assert(!ml_page_guard_same("abc", "abcd", 4));
    ck_assert(!ml_page_guard_same("abc", "abd", 3));
    ck_assert(!ml_page_guard_same("abc", "", 0));
    ck_assert(!ml_page_guard_same("abc", "ab\0c", 4));
}
END_TEST

START_TEST(knows_its_own_names_alone) {
    static const struct {
        const char *place;
        const char *host;
        bool is_known;
    } cases[] = {
        {"8080", "127.0.0.1:8080", true},
        {"8080", "localhost:8080", true},
        {"8080", "LOCALHOST:8080", true},
        {"8080", "127.0.0.1", false},
        {"8080", "127.0.0.1:8081", false},
        {"8080", "evil.example:8080", false},
        {"8080", "127.0.0.1.evil.example:8080", false},
        {"8080", "192.0.2.1:8080", false},
        {"8080", "localhost:8080.evil.example", false},
        {"8080", "localhost:", false},
        {"8080", "", false},
        {"8080", ":8080", false},
        {"8080", "[::1]:8080", false},
        {"80", "localhost", true},
        {"[::1]:8080", "[::1]:8080", true},
        {"[::1]:8080", "[::1", false},
        {"0.0.0.0:8080", "192.0.2.1:8080", true},
        {"0.0.0.0:8080", "evil.example:8080", false},
        {"192.0.2.1:8080", "192.0.2.1:8080", true},
        {"192.0.2.1:8080", "localhost:8080", false},
        {"unix:/x", "localhost", true},
        {"unix:/x", "evil.example", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct ml_page_guard guard = guard_at(cases[i].place);
        ck_assert_msg(
            ml_page_guard_knows_host(&guard, cases[i].host) == cases[i].is_known,
            "%s at %s",
            cases[i].host,
            cases[i].place
        );
    }
    const struct ml_page_guard guard = guard_at("8080");
    ck_assert(!ml_page_guard_knows_host(&guard, NULL));
}
END_TEST

START_TEST(takes_the_token_as_header_argument_or_cookie) {
    const struct ml_page_guard guard = guard_at("8080");
    char header[128];
    char cookies[256];
    struct ml_page_claim claim = {.host = "127.0.0.1:8080"};
    ck_assert_int_eq(ml_page_guard_proof(&guard, &claim), ML_PAGE_PROOF_NONE);
    static const char *const schemes[] = {"token", "Bearer", "bearer", "Token"};
    for (size_t i = 0; i < 4; i++) {
        (void)snprintf(header, sizeof(header), "%s %s", schemes[i], guard.token);
        claim.authorization = header;
        ck_assert_int_eq(ml_page_guard_proof(&guard, &claim), ML_PAGE_PROOF_TOKEN);
    }
    claim.authorization = guard.token;
    ck_assert_int_eq(ml_page_guard_proof(&guard, &claim), ML_PAGE_PROOF_NONE);
    claim.authorization = "token ";
    ck_assert_int_eq(ml_page_guard_proof(&guard, &claim), ML_PAGE_PROOF_NONE);
    claim = (struct ml_page_claim){.query_token = guard.token};
    ck_assert_int_eq(ml_page_guard_proof(&guard, &claim), ML_PAGE_PROOF_TOKEN);
    (void)snprintf(cookies, sizeof(cookies), "a=b; memlog-8080=%s; c=d", guard.token);
    claim = (struct ml_page_claim){.cookies = cookies};
    ck_assert_int_eq(ml_page_guard_proof(&guard, &claim), ML_PAGE_PROOF_COOKIE);
    (void)snprintf(
        cookies, sizeof(cookies), "memlog-8081=%s; xmemlog-8080=%s", guard.token, guard.token
    );
    ck_assert_int_eq(ml_page_guard_proof(&guard, &claim), ML_PAGE_PROOF_NONE);
    claim = (struct ml_page_claim){.query_token = guard.page_token};
    ck_assert_int_eq(ml_page_guard_proof(&guard, &claim), ML_PAGE_PROOF_NONE);
}
END_TEST

START_TEST(a_cookie_alone_may_not_act) {
    const struct ml_page_guard guard = guard_at("8080");
    char cookies[128];
    (void)snprintf(cookies, sizeof(cookies), "memlog-8080=%s", guard.token);
    struct ml_page_claim claim = {.cookies = cookies};
    ck_assert(!ml_page_guard_may_act(&guard, &claim));
    claim.page_token = guard.token;
    ck_assert(!ml_page_guard_may_act(&guard, &claim));
    claim.page_token = guard.page_token;
    ck_assert(ml_page_guard_may_act(&guard, &claim));
    claim = (struct ml_page_claim){.page_token = guard.page_token};
    ck_assert(!ml_page_guard_may_act(&guard, &claim));
    claim = (struct ml_page_claim){.query_token = guard.token};
    ck_assert(ml_page_guard_may_act(&guard, &claim));
}
END_TEST

START_TEST(other_sites_are_told_by_origin_and_fetch_site) {
    static const struct {
        const char *origin;
        const char *fetch_site;
        bool is_own;
    } cases[] = {
        {NULL, NULL, true},
        {"http://127.0.0.1:8080", NULL, true},
        {"http://127.0.0.1:8080", "same-origin", true},
        {NULL, "none", true},
        {"http://localhost:8080", NULL, false}, /* the page is not open under that name */
        {"http://127.0.0.1:9", NULL, false},
        {"https://127.0.0.1:8080", NULL, false},
        {"http://evil.example", NULL, false},
        {"null", NULL, false},
        {"", NULL, false},
        {NULL, "same-site", false},
        {NULL, "cross-site", false},
        {"http://127.0.0.1:8080", "cross-site", false},
    };
    const struct ml_page_guard guard = guard_at("8080");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct ml_page_claim claim = {
            .host = "127.0.0.1:8080",
            .origin = cases[i].origin,
            .fetch_site = cases[i].fetch_site,
        };
        ck_assert_msg(ml_page_guard_is_own_site(&guard, &claim) == cases[i].is_own, "case %zu", i);
    }
}
END_TEST

START_TEST(the_address_can_be_opened) {
    char url[ML_PAGE_URL_BYTES];
    char expected[ML_PAGE_URL_BYTES];
    const struct ml_page_guard four = guard_at("8080");
    const struct ml_page_guard six = guard_at("[::1]:8080");
    ml_page_guard_url(&four, url);
    (void)snprintf(expected, sizeof(expected), "http://127.0.0.1:8080/?token=%s", four.token);
    ck_assert_str_eq(url, expected);
    ml_page_guard_url(&six, url);
    (void)snprintf(expected, sizeof(expected), "http://[::1]:8080/?token=%s", six.token);
    ck_assert_str_eq(url, expected);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_test(all, tokens_are_new_each_time_and_told_by_the_whole);
    tcase_add_test(all, knows_its_own_names_alone);
    tcase_add_test(all, takes_the_token_as_header_argument_or_cookie);
    tcase_add_test(all, a_cookie_alone_may_not_act);
    tcase_add_test(all, other_sites_are_told_by_origin_and_fetch_site);
    tcase_add_test(all, the_address_can_be_opened);
    return run_suite("page_guard", all);
}
