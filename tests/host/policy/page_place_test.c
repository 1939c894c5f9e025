#include "host/policy/page_place.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static enum ml_status parse(const char *value, struct ml_page_place *out_place) {
    struct ml_error_message error = {.text = ""};
    const enum ml_status status = ml_page_place_parse(value, out_place, &error);
    ck_assert_msg((status == ML_OK) == (error.text[0] == '\0'), "%s: %s", value, error.text);
    return status;
}

START_TEST(nothing_said_is_a_free_port_of_this_machine) {
    static const char *const values[] = {NULL, ""};
    for (size_t i = 0; i < 2; i++) {
        struct ml_page_place place;
        ck_assert_int_eq(parse(values[i], &place), ML_OK);
        ck_assert_int_eq(place.kind, ML_PAGE_TCP);
        ck_assert_str_eq(place.address, "127.0.0.1");
        ck_assert_uint_eq(place.port, 0);
        ck_assert(!place.asked);
        ck_assert(ml_page_place_is_local(&place));
    }
}
END_TEST

START_TEST(takes_ports_addresses_and_paths) {
    static const struct {
        const char *value;
        const char *address;
        unsigned port;
        bool is_local;
    } cases[] = {
        {"8080", "127.0.0.1", 8080, true},
        {"0", "127.0.0.1", 0, true},
        {"127.0.0.1:8080", "127.0.0.1", 8080, true},
        {"localhost:8080", "127.0.0.1", 8080, true},
        {"127.1.2.3:1", "127.1.2.3", 1, true},
        {"[::1]:65535", "::1", 65535, true},
        {"0.0.0.0:80", "0.0.0.0", 80, false},
        {"[::]:80", "::", 80, false},
        {"192.0.2.1:80", "192.0.2.1", 80, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_page_place place;
        ck_assert_int_eq(parse(cases[i].value, &place), ML_OK);
        ck_assert_int_eq(place.kind, ML_PAGE_TCP);
        ck_assert_str_eq(place.address, cases[i].address);
        ck_assert_uint_eq(place.port, cases[i].port);
        ck_assert(place.asked);
        ck_assert(ml_page_place_is_local(&place) == cases[i].is_local);
    }
    struct ml_page_place place;
    ck_assert_int_eq(parse("unix:/tmp/page", &place), ML_OK);
    ck_assert_int_eq(place.kind, ML_PAGE_UNIX);
    ck_assert_str_eq(place.path, "/tmp/page");
    ck_assert(ml_page_place_is_local(&place));
}
END_TEST

START_TEST(refuses_what_is_no_place) {
    static const char *const values[] = {
        "x",
        "65536",
        "-1",
        "127.0.0.1",
        "127.0.0.1:",
        ":8080",
        "example:80",
        "::1:80",
        "[127.0.0.1]:80",
        "[::1]",
        "unix:",
        "127.0.0.1:80x",
        "127.0.0.300:80",
    };
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        struct ml_page_place place;
        ck_assert_msg(parse(values[i], &place) != ML_OK, "%s", values[i]);
    }
    char path[200] = "unix:";
    memset(path + 5, 'a', 108);
    struct ml_page_place place;
    ck_assert_int_eq(parse(path, &place), ML_PEER_RANGE);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_test(all, nothing_said_is_a_free_port_of_this_machine);
    tcase_add_test(all, takes_ports_addresses_and_paths);
    tcase_add_test(all, refuses_what_is_no_place);
    return run_suite("page_place", all);
}
