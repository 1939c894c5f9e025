#include "host/process/image.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

#define EXE "55d0ff3000-55d0ff4000 r-xp 00000000 00:1a 5  /usr/bin/prog\n"
#define STACK "7ffe00000000-7ffe00021000 rw-p 00000000 00:00 0  [stack]\n"
#define VDSO "7ffff7fc4000-7ffff7fc6000 r-xp 00000000 00:00 0  [vdso]\n"
#define VDSO_32 "f7fc4000-f7fc6000 r-xp 00000000 00:00 0  [vdso]\n"
#define DATA "7f0000000000-7f0000001000 r--p 00000000 00:1a 6  /usr/share/data\n"
#define BELOW(path) "151cacf6a0-151cacf8c0 r-xp 00000000 00:1a 6  " path "\n"
#define LOADER(path) "7f0000100000-7f0000101000 r-xp 00000000 00:1a 6  " path "\n"

START_TEST(tells_images_by_what_the_kernel_has_mapped) {
    static const struct {
        const char *maps;
        enum ml_image_kind kind;
    } cases[] = {
        {"", ML_IMAGE_GONE},
        {STACK, ML_IMAGE_GONE},
        {EXE STACK, ML_IMAGE_GONE},
        {EXE STACK VDSO, ML_IMAGE_STATIC},
        {EXE LOADER("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2") STACK VDSO,
         ML_IMAGE_PRELOADABLE},
        {EXE LOADER("/lib/ld-linux-aarch64.so.1") STACK VDSO, ML_IMAGE_PRELOADABLE},
        {EXE LOADER("/lib/ld-musl-x86_64.so.1") STACK VDSO, ML_IMAGE_OTHER_LOADER},
        {EXE LOADER("/usr/lib/x86_64-linux-musl/libc.so") STACK VDSO, ML_IMAGE_OTHER_LOADER},
        {EXE LOADER("/lib/x86_64-linux-gnu/ld-2.31.so") STACK VDSO, ML_IMAGE_PRELOADABLE},
        {EXE LOADER("/lib/libc.so.6") LOADER("/lib/ld-linux-x86-64.so.2"), ML_IMAGE_PRELOADABLE},
        {EXE DATA STACK VDSO, ML_IMAGE_STATIC},
        {EXE LOADER("/lib/ld-linux.so.2") STACK VDSO_32, ML_IMAGE_32_BIT},
        {EXE STACK VDSO_32, ML_IMAGE_32_BIT},
        {LOADER("/lib/ld-linux-x86-64.so.2") STACK VDSO, ML_IMAGE_PRELOADABLE},
        /* Mapped from below: the loader lies under the program. */
        {BELOW("/lib/ld-linux-x86-64.so.2") EXE STACK VDSO, ML_IMAGE_PRELOADABLE},
        {BELOW("/lib/ld-musl-x86_64.so.1") EXE STACK VDSO, ML_IMAGE_OTHER_LOADER},
        {"garbage\n\n", ML_IMAGE_GONE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        FILE *file = fmemopen((void *)(uintptr_t)cases[i].maps, strlen(cases[i].maps) + 1, "r");
        ck_assert_ptr_nonnull(file);
        ck_assert_msg(ml_image_from_maps(file) == cases[i].kind, "%s", cases[i].maps);
        (void)fclose(file);
    }
}
END_TEST

START_TEST(an_ordinary_program_can_take_the_preload_and_nobody_is_gone) {
    int pipe_fds[2];
    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        (void)execlp("sleep", "sleep", "30", (char *)NULL);
        _exit(127);
    }
    char byte = 0;
    (void)close(pipe_fds[1]);
    ck_assert_int_eq(read(pipe_fds[0], &byte, 1), 0); /* its exec closes the other end */
    /* That is early in the exec: the loader is mapped a moment later. */
    enum ml_image_kind kind = ml_image_look(child);
    for (int waited_ms = 0; kind != ML_IMAGE_PRELOADABLE && waited_ms < 20000; waited_ms++) {
        (void)usleep(1000);
        kind = ml_image_look(child);
    }
    ck_assert_int_eq(kind, ML_IMAGE_PRELOADABLE);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    ck_assert_int_eq(ml_image_look(0x3fffffff), ML_IMAGE_GONE);
}
END_TEST

START_TEST(every_kind_has_its_words) {
    for (int kind = 0; kind <= ML_IMAGE_UNREADABLE; kind++) {
        ck_assert_uint_gt(strlen(ml_image_text((enum ml_image_kind)kind)), 5);
    }
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("image");
    tcase_add_test(tcase, tells_images_by_what_the_kernel_has_mapped);
    tcase_add_test(tcase, an_ordinary_program_can_take_the_preload_and_nobody_is_gone);
    tcase_add_test(tcase, every_kind_has_its_words);
    return run_suite("host/image", tcase);
}
