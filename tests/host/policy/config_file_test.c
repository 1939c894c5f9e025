#include "host/policy/config_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

static char folder[] = "/tmp/memlog-config.XXXXXX";
static char path[PATH_MAX];
static struct ml_config config;
static struct ml_error_message error;

static bool is_command(const char *name) {
    return strcmp(name, "run") == 0 || strcmp(name, "report") == 0;
}

static void setup(void) {
    char below[PATH_MAX];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(below, sizeof(below), "%s/memlog", folder);
    ck_assert_int_eq(mkdir(below, 0700), 0);
    snprintf(path, sizeof(path), "%s/memlog/config", folder);
    ck_assert_int_eq(setenv("XDG_CONFIG_HOME", folder, 1), 0);
    error = (struct ml_error_message){.text = ""};
}

static void teardown(void) {
    char below[PATH_MAX];
    ml_config_fini(&config);
    (void)unlink(path);
    snprintf(below, sizeof(below), "%s/memlog", folder);
    (void)rmdir(below);
    (void)rmdir(folder);
}

static bool load(const char *text) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    ck_assert_int_eq(chmod(path, 0600), 0);
    ml_config_fini(&config);
    error.text[0] = '\0';
    return ml_config_load(&config, is_command, &error);
}

static void refused(const char *text, const char *why) {
    char wanted[PATH_MAX + 200];
    ck_assert(!load(text));
    snprintf(wanted, sizeof(wanted), "%s:%s", path, why);
    ck_assert_msg(strncmp(error.text, wanted, strlen(wanted)) == 0, "%s", error.text);
}

START_TEST(sections_have_options_with_their_lines) {
    struct ml_option_default defaults[ML_OPTION_DEFAULTS_MAX];
    char origin[PATH_MAX + 8];
    ck_assert(load("# mine\n[run report]\n  limit = 10 \njson\n\n[ run ]\r\noutput=a = b\n"));
    ck_assert_ptr_null(config.unread);
    ck_assert_uint_eq(ml_config_of(&config, "report", defaults), 2);
    ck_assert_str_eq(defaults[0].word, "--limit=10");
    ck_assert_str_eq(defaults[1].word, "--json");
    snprintf(origin, sizeof(origin), "%s:4", path);
    ck_assert_str_eq(defaults[1].origin, origin);
    ck_assert_uint_eq(ml_config_of(&config, "run", defaults), 3);
    ck_assert_str_eq(defaults[2].word, "--output=a = b");
    ck_assert_uint_eq(ml_config_of(&config, "ru", defaults), 0);
    ck_assert_uint_eq(ml_config_of(&config, "diff", defaults), 0);
}
END_TEST

START_TEST(a_broken_line_is_named) {
    refused("limit = 1\n", "1: in front of the first section, such as [run], is no option: limit");
    refused("[run]\n--limit = 1\n", "2: options stand here without dashes in front: --limit");
    refused("[run]\n\nlimit 1\n", "3: NAME = VALUE is wanted");
    refused("[run]\n= 1\n", "2: NAME = VALUE is wanted");
    refused("[run]\nhelp\n", "2: --help is no default");
    refused("[rn]\n", "1: no such command; 'memlog help' lists them: rn");
    refused("[run\n", "1: a section ends with ]");
    refused("[]\n", "1: a section names a command");
}
END_TEST

START_TEST(a_file_that_others_may_have_written_is_not_read) {
    ck_assert(load("[run]\nquiet\n"));
    ck_assert_uint_eq(config.count, 1);
    const mode_t modes[] = {0620, 0602, 0666};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        ml_config_fini(&config);
        ck_assert_int_eq(chmod(path, modes[i]), 0);
        ck_assert(ml_config_load(&config, is_command, &error));
        ck_assert_uint_eq(config.count, 0);
        ck_assert(config.is_refused);
        ck_assert_str_eq(config.unread, "others may write it (chmod go-w)");
    }
    if (geteuid() == 0) {
        ck_assert_int_eq(chmod(path, 0600), 0);
        ck_assert_int_eq(chown(path, 65534, 65534), 0);
        ck_assert(ml_config_load(&config, is_command, &error));
        ck_assert_str_eq(config.unread, "it belongs to another user");
        ck_assert_uint_eq(config.count, 0);
    }
}
END_TEST

START_TEST(an_absent_file_is_no_error) {
    ck_assert(ml_config_load(&config, is_command, &error));
    ck_assert_str_eq(config.unread, "there is none");
    ck_assert(!config.is_refused);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert(ml_config_load(&config, is_command, &error));
    ck_assert_ptr_nonnull(config.unread);
    ck_assert_int_eq(rmdir(path), 0);
}
END_TEST

START_TEST(relative_folders_do_not_count) {
    ck_assert_int_eq(setenv("XDG_CONFIG_HOME", "config", 1), 0);
    ck_assert_int_eq(setenv("HOME", "/home/me", 1), 0);
    ck_assert(ml_config_load(&config, is_command, &error));
    ck_assert_str_eq(config.path, "/home/me/.config/memlog/config");
    ck_assert_int_eq(setenv("HOME", "me", 1), 0);
    ck_assert(ml_config_load(&config, is_command, &error));
    ck_assert_str_eq(config.path, "");
    ck_assert_ptr_nonnull(config.unread);
}
END_TEST

START_TEST(what_is_too_large_is_not_read) {
    char *text = calloc(1, ML_CONFIG_MAX_BYTES + 2);
    ck_assert_ptr_nonnull(text);
    memset(text, '#', ML_CONFIG_MAX_BYTES + 1);
    ck_assert(load(text));
    ck_assert_str_eq(config.unread, "it is larger than 64 KiB");
    free(text);
    ml_config_fini(&config);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("[run]\n", file);
    for (int i = 0; i <= ML_CONFIG_LINES_MAX; i++) {
        fputs("quiet\n", file);
    }
    fclose(file);
    ck_assert(!ml_config_load(&config, is_command, &error));
    ck_assert_ptr_nonnull(strstr(error.text, "there are too many lines"));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("config_file");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, sections_have_options_with_their_lines);
    tcase_add_test(tests, a_broken_line_is_named);
    tcase_add_test(tests, a_file_that_others_may_have_written_is_not_read);
    tcase_add_test(tests, an_absent_file_is_no_error);
    tcase_add_test(tests, relative_folders_do_not_count);
    tcase_add_test(tests, what_is_too_large_is_not_read);
    return run_suite("host/policy/config_file", tests);
}
