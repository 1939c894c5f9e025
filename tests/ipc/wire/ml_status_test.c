#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

#include "ipc/wire/ml_status.h"

START_TEST(each_status_has_its_name_a_text_and_the_family_of_its_name) {
    for (int i = 0; i < ML_STATUS_COUNT; i++) {
        const char *name = ml_status_name((enum ml_status)i);
        const enum ml_family family = ml_status_family((enum ml_status)i);
        ck_assert_uint_gt(strlen(ml_status_text((enum ml_status)i)), 0);
        ck_assert_int_eq(family == ML_FAMILY_OK, strcmp(name, "ML_OK") == 0);
        ck_assert_int_eq(family == ML_FAMILY_PEER, strncmp(name, "ML_PEER_", 8) == 0);
        ck_assert_int_eq(family == ML_FAMILY_ENV, strncmp(name, "ML_ENV_", 7) == 0);
        ck_assert_int_eq(family == ML_FAMILY_BUG, strncmp(name, "ML_BUG_", 7) == 0);
    }
}
END_TEST

START_TEST(a_number_outside_the_list_has_a_name_too) {
    ck_assert_str_eq(ml_status_name((enum ml_status)999), "ML_STATUS_?");
    ck_assert_str_eq(ml_status_name((enum ml_status) - 1), "ML_STATUS_?");
    ck_assert_uint_gt(strlen(ml_status_text((enum ml_status)999)), 0);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("ml_status");
    tcase_add_test(tcase, each_status_has_its_name_a_text_and_the_family_of_its_name);
    tcase_add_test(tcase, a_number_outside_the_list_has_a_name_too);
    return run_suite("ipc/ml_status", tcase);
}
