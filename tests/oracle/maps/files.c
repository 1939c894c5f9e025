/* Mappings of files: who mapped them knows, whatever the file. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/oracle/maps/claims.h"

MAPS_PATH static void file_private(void);
MAPS_PATH static void file_shared(void);
MAPS_PATH static void file_in_parts(void);
MAPS_PATH static void file_offset(void);
MAPS_PATH static void file_removed(void);
MAPS_PATH static void file_fixed(void);
MAPS_PATH static void libraries(void);
MAPS_PATH char *map_file(size_t pages, int flags, int fd, size_t offset_pages);

/* A new file of so many pages. */
static int make_file(const char *name, size_t pages) {
    static char path[512], page[MAPS_PAGE];
    (void)snprintf(path, sizeof(path), "%s/%s", getenv("ORACLE_DIR"), name);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    memset(page, 7, sizeof(page));
    for (size_t i = 0; i < pages; i++) {
        if (write(fd, page, sizeof(page)) != sizeof(page)) {
            claims_die("cannot write a file");
        }
    }
    return fd;
}

MAPS_PATH char *map_file(size_t pages, int flags, int fd, size_t offset_pages) {
    char *at = mmap(
        NULL,
        pages * MAPS_PAGE,
        PROT_READ | PROT_WRITE,
        flags,
        fd,
        (off_t)(offset_pages * MAPS_PAGE)
    );
    if (at == MAP_FAILED) {
        claims_die("mmap of a file failed");
    }
    return at;
}

/* Which pages a read brings in beside its own is the kernel's choice. */
static void claim_file(const char *chain, const char *start, size_t pages) {
    claim((struct claim
    ){.kind = "mapped",
      .chain = chain,
      .start = start,
      .mapped_bytes = pages * MAPS_PAGE,
      .private_bytes = CLAIM_KERNEL,
      .shared_bytes = CLAIM_KERNEL});
}

static void look_at(const char *start, size_t pages) {
    for (size_t i = 0; i < pages; i++) {
        (void)*(volatile const char *)(start + i * MAPS_PAGE);
    }
}

MAPS_PATH static void file_private(void) {
    char *at = map_file(60, MAP_PRIVATE, make_file("private.bin", 60), 0);
    touch(at, 20 * MAPS_PAGE);
    look_at(at + 30 * MAPS_PAGE, 2);
    claim_file("map_file<file_private", at, 60);
}

MAPS_PATH static void file_shared(void) {
    char *at = map_file(60, MAP_SHARED, make_file("shared.bin", 60), 0);
    touch(at, 9 * MAPS_PAGE);
    look_at(at + 40 * MAPS_PAGE, 5);
    claim_file("map_file<file_shared", at, 60);
}

MAPS_PATH static void file_in_parts(void) {
    char *at = map_file(60, MAP_PRIVATE, make_file("parts.bin", 60), 0);
    touch(at, 60 * MAPS_PAGE);
    if (munmap(at + 12 * MAPS_PAGE, (size_t)8 * MAPS_PAGE) != 0 ||
        mprotect(at + 40 * MAPS_PAGE, (size_t)5 * MAPS_PAGE, PROT_READ) != 0) {
        claims_die("munmap or mprotect failed");
    }
    claim_file("map_file<file_in_parts", at, 12);
    claim_file("map_file<file_in_parts", at + 20 * MAPS_PAGE, 40);
}

/* One file, mapped twice by two call paths. */
MAPS_PATH static void file_offset(void) {
    const int fd = make_file("offset.bin", 60);
    char *at = map_file(10, MAP_SHARED, fd, 30);
    touch(at, 10 * MAPS_PAGE);
    claim_file("map_file<file_offset", at, 10);
    char *again = mmap(NULL, (size_t)60 * MAPS_PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    if (again == MAP_FAILED) {
        claims_die("mmap of a file failed");
    }
    look_at(again, 33);
    claim_file("file_offset", again, 60);
}

/* Its name in smaps ends with " (deleted)". */
MAPS_PATH static void file_removed(void) {
    char path[512];
    char *at = map_file(30, MAP_PRIVATE, make_file("removed.bin", 30), 0);
    (void)snprintf(path, sizeof(path), "%s/removed.bin", getenv("ORACLE_DIR"));
    touch(at, 3 * MAPS_PAGE);
    (void)unlink(path);
    claim_file("map_file<file_removed", at, 30);
}

/* As loaders do: anonymous room, files over it, and the rest stays. */
MAPS_PATH static void file_fixed(void) {
    const int fd = make_file("fixed.bin", 30);
    char *room = map_pages(90);
    touch(room, 90 * MAPS_PAGE);
    char *at = mmap(
        room + 10 * MAPS_PAGE,
        (size_t)30 * MAPS_PAGE,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_FIXED,
        fd,
        0
    );
    touch(at, 4 * MAPS_PAGE);
    claim_pages("map_pages<file_fixed", room, 10, 10);
    claim_file("file_fixed", at, 30);
    claim_pages("map_pages<file_fixed", room + 40 * MAPS_PAGE, 50, 50);
}

static void *open_plugin(const char *name) {
    char path[640];
    const ssize_t count = readlink("/proc/self/exe", path, 512);
    path[count > 0 ? count : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        claims_die("cannot find my own folder");
    }
    strcpy(slash + 1, name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        claims_die("dlopen failed");
    }
    return library;
}

/* The loader's mappings come and go without a call of mmap that anybody could see. */
MAPS_PATH static void libraries(void) {
    for (int i = 0; i < 20; i++) {
        void *large = open_plugin("plugin_large.so");
        (void)dlclose(large);
        void *small = open_plugin("plugin_small.so");
        (void)dlclose(small);
    }
    (void)open_plugin("plugin_small.so");
    char *at = map_pages(50);
    touch(at, 10 * MAPS_PAGE);
    claim_pages("map_pages<libraries", at, 50, 10);
}

bool files_case(const char *name) {
    static const struct maps_case cases[] = {
        {"file_private", file_private},
        {"file_shared", file_shared},
        {"file_in_parts", file_in_parts},
        {"file_offset", file_offset},
        {"file_removed", file_removed},
        {"file_fixed", file_fixed},
        {"libraries", libraries},
    };
    return maps_run(cases, sizeof(cases) / sizeof(*cases), name);
}
