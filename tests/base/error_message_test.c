#include "base/error_message.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_error_message error;

START_TEST(says_what_it_was_given) {
    error.text[0] = '\0';
    ml_error_set(&error, "'%s' has %d ends", "sausage", 2);
    ck_assert_str_eq(error.text, "'sausage' has 2 ends");
}
END_TEST

START_TEST(the_cause_stays_and_its_consequence_is_dropped) {
    error.text[0] = '\0';
    ml_error_set(&error, "no such file");
    ml_error_set(&error, "cannot start");
    ck_assert_str_eq(error.text, "no such file");
}
END_TEST

START_TEST(what_is_too_long_is_cut_inside_its_place) {
    static char path[2 * ML_ERROR_MESSAGE_BYTES];
    static struct {
        struct ml_error_message message;
        char behind;
    } place = {.behind = 'x'};
    memset(path, 'p', sizeof(path) - 1);
    ml_error_set(&place.message, "%s", path);
    ck_assert_uint_eq(strlen(place.message.text), ML_ERROR_MESSAGE_BYTES - 1);
    ck_assert_int_eq(place.behind, 'x');
}
END_TEST

START_TEST(who_wants_no_message_passes_none) {
    ml_error_set(NULL, "%s", "nobody reads this");
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("error_message");
    tcase_add_test(tcase, says_what_it_was_given);
    tcase_add_test(tcase, the_cause_stays_and_its_consequence_is_dropped);
    tcase_add_test(tcase, what_is_too_long_is_cut_inside_its_place);
    tcase_add_test(tcase, who_wants_no_message_passes_none);
    return run_suite("base/error_message", tcase);
}
