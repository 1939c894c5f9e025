/* What the kernel says of control groups and of pressure: a process's own line of groups, whose
 * names are anybody's, and the files of a group. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/process/cgroup_info.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

static const char *root; /* NULL: not begun */
static const char *const folders[] = {"", "/g", "/memory", "/memory/g"};
static const char *const files[] = {
    "memory.current",
    "memory.max",
    "memory.high",
    "memory.events",
    "memory.pressure",
    "memory.stat",
    "memory.usage_in_bytes",
    "memory.limit_in_bytes"};

static void path_of(char path[PATH_MAX], const char *folder, const char *file) {
    (void)snprintf(path, PATH_MAX, "%s%s/%s", root, folder, file);
}

/* Every file of the groups is one: what is written to it stands in all of them. */
static void begin(void) {
    char first[PATH_MAX];
    char path[PATH_MAX];
    root = fuzz_folder();
    for (size_t i = 1; i < sizeof(folders) / sizeof(folders[0]); i++) {
        path_of(path, folders[i], "");
        REQUIRE(mkdir(path, 0700) == 0);
    }
    path_of(first, "", files[0]);
    fuzz_write(first, NULL, 0);
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        for (size_t k = i == 0; k < sizeof(files) / sizeof(files[0]); k++) {
            path_of(path, folders[i], files[k]);
            REQUIRE(link(first, path) == 0);
        }
    }
}

static void check_group(const char *text) {
    struct ml_cgroup own;
    struct memlog_service_observed_memory info;
    if (!ml_cgroup_find(root, text, &own)) {
        return;
    }
    const uint64_t least = ml_cgroup_least_limit_bytes(&own);
    struct ml_cgroup group = own;
    do {
        const uint64_t limit = ml_cgroup_limit_bytes(&group);
        REQUIRE(limit == 0 || (least != 0 && limit >= least));
        REQUIRE(ml_cgroup_holds(&group, own.folder));
        REQUIRE(strncmp(group.folder, root, strlen(root)) == 0);
        REQUIRE(strlen(group.folder) < sizeof(group.folder));
        REQUIRE(strlen(group.name) < sizeof(group.name));
        (void)ml_cgroup_read(&group, &info);
    } while (ml_cgroup_up(&group));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char path[PATH_MAX];
    uint32_t some = 0;
    uint32_t full = 0;
    char *text = malloc(count_bytes + 1);
    REQUIRE(text != NULL);
    if (root == NULL) {
        begin();
    }
    memcpy(text, data, count_bytes);
    text[count_bytes] = '\0';
    path_of(path, "", files[0]);
    fuzz_write(path, data, count_bytes);
    check_group(text);
    check_group("0::/g\n");
    check_group("4:cpu,memory:/g\n");
    ml_pressure_parse(text, &some, &full);
    REQUIRE(some <= 100 * 100 && full <= 100 * 100);
    free(text);
    return 0;
}
