"""What a program sees of libdl and of the allocator's first calls is the same under memlog and without it: no error text that it did not
cause, none of its own lost, no call of its own malloc and free that was not its own."""
import unittest

import as_bare

WRAPS_FREE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
void free(void *block) {
    static void (*real)(void *);
    if (real == NULL) real = dlsym(RTLD_NEXT, "free");
    real(block);
}
int main(void) {
    void *volatile block = malloc(10);
    free(block);
    return write(1, "ok\\n", 3) == 3 ? 0 : 1;
}
"""

GUARDED_LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static int resolving;
void free(void *block) {
    static void (*real)(void *);
    if (real == NULL) {
        if (resolving) return;
        resolving = 1;
        real = dlsym(RTLD_NEXT, "free");
        resolving = 0;
    }
    real(block);
}
"""

# Each resolved when it is called first.
LAZY_LIBRARY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
static char boot[65536];
static size_t used;
static int resolving;
void *malloc(size_t size) {
    static void *(*real)(size_t);
    if (real == NULL) real = dlsym(RTLD_NEXT, "malloc");
    return real(size);
}
void free(void *block) {
    static void (*real)(void *);
    if ((char *)block >= boot && (char *)block < boot + sizeof boot) return;
    if (real == NULL) real = dlsym(RTLD_NEXT, "free");
    real(block);
}
void *calloc(size_t count, size_t size) {
    static void *(*real)(size_t, size_t);
    if (real == NULL) {
        if (resolving) {
            void *block = boot + used;
            used += (count * size + 15) & ~15ul;
            return block;
        }
        resolving = 1;
        real = dlsym(RTLD_NEXT, "calloc");
        resolving = 0;
    }
    return real(count, size);
}
"""

# Counts what is asked of the program's own allocator before main, with whoever is in front of it or behind it.
COUNTS = """
#include <stdio.h>
#include <stddef.h>
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void __libc_free(void *);
static int mallocs, callocs, reallocs, frees;
void *malloc(size_t size) { mallocs++; return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { callocs++; return __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { reallocs++; return __libc_realloc(block, size); }
void free(void *block) { frees++; __libc_free(block); }
int main(void) {
    int counts[] = {mallocs, callocs, reallocs, frees};
    printf("%d %d %d %d\\n", counts[0], counts[1], counts[2], counts[3]);
    return 0;
}
"""

# A C++ library comes late, and its first operator new after an error that the program has not looked at yet.
LATE_CXX = """
extern "C" void *late_new() { return new long[20]; }
extern "C" void late_delete(void *block) { delete[] static_cast<long *>(block); }
"""
LATE = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **words) {
    const char *text = dlerror();
    puts(text == NULL ? "nothing at the start" : text);
    for (int round = 0; round < 3; round++) {
        void *library = dlopen(words[1], RTLD_NOW);
        if (library == NULL) { puts(dlerror()); return 1; }
        void *(*create)(void) = (void *(*)(void))dlsym(library, "late_new");
        void (*destroy)(void *) = (void (*)(void *))dlsym(library, "late_delete");
        if (dlopen("/no/such/library.so", RTLD_NOW) != NULL) return 2;
        destroy(create());
        text = dlerror();
        puts(text == NULL ? "the error is gone" : text);
        if (dlclose(library) != 0) return 3;
    }
    return 0;
}
"""

# The loader is asked to run its constructor first of all, as glibc's libpthread asked before 2.34, and so memlog's is not.
FIRST = "int nothing(void) { return 0; }\n"
EARLY_LIBRARY = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
char *volatile kept[100];
__attribute__((noinline)) static char *keep(size_t size) { char *block = malloc(size); memset(block, 1, size); return block; }
__attribute__((constructor)) static void early(void) {
    for (char **entry = environ; *entry != NULL; entry++)
        if (strstr(*entry, "emlog") != NULL || strstr(*entry, "MEMLOG") != NULL || strncmp(*entry, "LD_", 3) == 0) puts(*entry);
    for (int i = 0; i < 100; i++) kept[i] = keep(1000);
    for (int i = 0; i < 50; i++) free(kept[i]);
    fflush(stdout);
    if (system("ls -d /usr") != 0) _exit(3);
}
int early_end(void) { for (int i = 50; i < 75; i++) free(kept[i]); return 7; }
"""
EARLY = "int nothing(void), early_end(void); int main(int count, char **words) { return early_end() + nothing() + (words[0] == 0); }\n"

# What is chosen when the program is relocated, before any constructor, allocates: our own are not found yet. Freed and moved much later.
BEFORE_ALL = """
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static char *early[64];
static int seen(void) { return 1; }
static int (*choose_seen(void))(void) {
    for (int i = 0; i < 64; i++) early[i] = memset(malloc(40), 'a' + i % 26, 40);
    return seen;
}
int is_seen(void) __attribute__((ifunc("choose_seen")));
int main(void) {
    for (int i = 0; i < 100000; i++) free(malloc(100));
    for (int way = 0; way < 2; way++) {
        int status = 0;
        pid_t child = way == 0 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) {
            for (int i = 0; i < 64; i++) free(early[i]);
            _exit(0);
        }
        if (waitpid(child, &status, 0) != child || status != 0) return 5;
    }
    for (int i = 0; i < 64; i += 2) free(early[i]);
    for (int i = 1; i < 64; i += 2) {
        char *moved = realloc(early[i], 5000);
        if (moved[39] != 'a' + i % 26) return 3;
        free(moved);
    }
    free(NULL);
    return is_seen() ? 0 : 4;
}
"""


class LoaderState(as_bare.Case):
    def test_a_program_that_wraps_free_when_it_is_called_first(self):
        report = self.assert_as_bare(self.build("wraps", WRAPS_FREE))
        self.assertTrue(self.entries(report, "wraps"), report["processes"])

    def test_a_preload_that_ignores_free_while_it_looks_for_the_real_one(self):
        library = self.build("guarded.so", GUARDED_LIBRARY, "-shared", "-fPIC")
        self.assert_as_bare("/bin/ls", "/", env=as_bare.preloaded(self, library))

    def test_a_preload_that_wraps_all_of_them_when_they_are_called_first(self):
        library = self.build("lazy.so", LAZY_LIBRARY, "-shared", "-fPIC")
        self.assert_as_bare("/bin/ls", "/", env=as_bare.preloaded(self, library))
        self.assert_as_bare("/bin/sh", "-c", "ls / | sort -r", env=as_bare.preloaded(self, library))

    def test_a_programs_own_allocator_is_called_no_more_often(self):
        self.assert_as_bare(self.build("counts", COUNTS))

    def test_blocks_from_before_any_constructor_are_freed_and_moved(self):
        program = self.build("before_all", BEFORE_ALL, "-Wl,-z,lazy")
        if self.bare(program)[0] != 0:
            self.skipTest("this loader has malloc bound later than what is chosen")
        for rate in ("1", "100", "1M"):
            report = self.assert_as_bare(program, options=("-q", "--no-page", f"--memlog-sampling-rate={rate}"))
            entry = self.entries(report, "before_all")[0]
            self.assertEqual((entry["complete"], entry["unknown_frees"]), (True, 0), f"{rate}: {entry['trouble']}")

    def test_an_error_that_the_program_has_not_looked_at_yet_stays_its_own(self):
        for name, compiler_options in (("gnu", ()), ("plain", ("-fno-sized-deallocation",))):
            library = self.build(f"late_{name}.so", LATE_CXX, "-shared", "-fPIC", *compiler_options, suffix=".cc")
            report = self.assert_as_bare(self.build("late", LATE), library)
            (entry,) = self.entries(report, "late")
            functions = {frame["function"] for stack in entry["stacks"] for frame in stack["frames"]}
            self.assertIn("late_new", functions)

    def test_what_constructors_do_is_recorded_where_another_library_is_the_first(self):
        place = f"-Wl,-rpath,{self.folder}"
        first = self.build("libfirst.so", FIRST, "-shared", "-fPIC", "-Wl,-z,initfirst")
        early = self.build("libearly.so", EARLY_LIBRARY, "-shared", "-fPIC")
        for name, libraries in (("alone", ()), ("behind", (first,))):
            source = EARLY if libraries else EARLY.replace(" + nothing()", "")
            program = self.build(name, source, "-Wl,--no-as-needed", early, *libraries, place)
            report = self.assert_as_bare(program, code=7)
            (entry,) = self.entries(report, name)
            kept = [stack for stack in entry["stacks"] if [frame["function"] for frame in stack["frames"]][:2] == ["keep", "early"]]
            self.assertEqual([sum(stack[figure] for stack in kept) for figure in ("total_blocks", "total_bytes", "live_blocks")], [100, 100000, 25])
            self.assertEqual((entry["unknown_frees"], len(self.entries(report, "ls"))), (0, 1), name)


if __name__ == "__main__":
    unittest.main(verbosity=2)
