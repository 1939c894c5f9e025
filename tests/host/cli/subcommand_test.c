#include "host/cli/subcommand.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(every_command_of_the_interface_is_known) {
    static const char *const names[] = {
        "run",        "ps",     "top",  "dump",    "start",  "stop",       "rate",      "upload",
        "suspects",   "report", "diff", "convert", "page",   "flamegraph", "symbolize", "timeline",
        "components", "expand", "list", "env",     "doctor", "help",       "--version", "--help"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert_msg(ml_subcommand_find(names[i]) != NULL, "%s", names[i]);
    }
    ck_assert_ptr_null(ml_subcommand_find("runs"));
    ck_assert_str_eq(ml_subcommand_suggest("reprot"), "report");
    ck_assert_ptr_null(ml_subcommand_suggest("xyzzyxyzzyxyzzy"));
}
END_TEST

START_TEST(words_of_other_tools_lead_to_the_command) {
    static const char *const words[][2] = {
        {"record", "run"}, {"flame", "flamegraph"}, {"compare", "diff"}, {"ui", "page"}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        ck_assert_str_eq(ml_subcommand_suggest(words[i][0]), words[i][1]);
        ck_assert_ptr_nonnull(ml_subcommand_find(words[i][1]));
        ck_assert_ptr_null(ml_subcommand_find(words[i][0]));
    }
}
END_TEST

START_TEST(every_help_has_an_example) {
    static const char *const names[] = {"run", "ps", "dump", "help"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        ck_assert_ptr_nonnull(ml_subcommand_find(names[i])->options->example);
    }
}
END_TEST

START_TEST(the_overview_names_what_is_there) {
    char *text = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&text, &count);
    ml_subcommand_overview(out);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_ptr_nonnull(strstr(text, "  run "));
    free(text);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("subcommand");
    tcase_add_test(tcase, every_command_of_the_interface_is_known);
    tcase_add_test(tcase, words_of_other_tools_lead_to_the_command);
    tcase_add_test(tcase, every_help_has_an_example);
    tcase_add_test(tcase, the_overview_names_what_is_there);
    return run_suite("host/subcommand", tcase);
}
