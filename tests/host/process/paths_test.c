#include "host/process/paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

START_TEST(files_are_found_beside_this_very_program) {
    char path[PATH_MAX];
    struct ml_error_message error = {.text = ""};
    ck_assert_int_eq(ml_paths_find("host_fake_service", path, &error), ML_OK);
    ck_assert_int_eq(path[0], '/');
    ck_assert_ptr_nonnull(strstr(path, "/host_fake_service"));
}
END_TEST

START_TEST(a_missing_file_is_named_with_the_places_where_it_was_looked_for) {
    char path[PATH_MAX];
    struct ml_error_message error = {.text = ""};
    ck_assert_int_eq(ml_paths_find("no-such-file", path, &error), ML_ENV_MISSING);
    ck_assert_ptr_nonnull(strstr(error.text, "no-such-file is neither in /"));
    ck_assert_ptr_nonnull(strstr(error.text, "/../lib/memlog"));
}
END_TEST

START_TEST(a_library_has_a_folder_of_preloads_only_where_there_is_one) {
    char folder[] = "/tmp/memlog-paths.XXXXXX";
    char path[PATH_MAX];
    char made[PATH_MAX];
    char library[PATH_MAX];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(library, sizeof(library), "%s/libmemlog.so", folder);
    ck_assert(!ml_paths_preload_folder(library, path));
    (void)snprintf(made, sizeof(made), "%s/preload", folder);
    ck_assert_int_eq(mkdir(made, 0700), 0);
    (void)snprintf(made, sizeof(made), "%s/preload/x86_64", folder);
    ck_assert_int_eq(mkdir(made, 0700), 0);
    ck_assert(!ml_paths_preload_folder(library, path));
    (void)snprintf(made, sizeof(made), "%s/preload/x86_64/libmemlog.so", folder);
    ck_assert_int_eq(symlink("/dev/null", made), 0);
    ck_assert(ml_paths_preload_folder(library, path));
    ck_assert_str_eq(strrchr(path, '/'), "/preload");
    ck_assert(!ml_paths_preload_folder("/nowhere/libmemlog.so", path));
    ck_assert(!ml_paths_preload_folder("libmemlog.so", path));
    ck_assert_int_eq(unlink(made), 0);
    *strrchr(made, '/') = '\0';
    ck_assert_int_eq(rmdir(made), 0);
    *strrchr(made, '/') = '\0';
    ck_assert_int_eq(rmdir(made), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("paths");
    tcase_add_test(tcase, files_are_found_beside_this_very_program);
    tcase_add_test(tcase, a_library_has_a_folder_of_preloads_only_where_there_is_one);
    tcase_add_test(tcase, a_missing_file_is_named_with_the_places_where_it_was_looked_for);
    return run_suite("host/paths", tcase);
}
