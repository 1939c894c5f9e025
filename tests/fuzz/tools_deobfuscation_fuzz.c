/* A map of ProGuard's, and a name that it is asked for: the input's first line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/model/deobfuscation.h"

/* Nothing grows by more than what a map can say of each of its words. */
static void ask(const struct ml_deobfuscation *names, const char *name, size_t map_bytes) {
    char *restored = ml_deobfuscation_apply(names, ~(uint64_t)0, name);
    REQUIRE(restored == NULL || strlen(restored) <= (strlen(name) + 1) * (map_bytes + 8));
    free(restored);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char path[64];
    char *name = NULL;
    size_t strange = 0;
    const uint8_t *end = count_bytes > 0 ? memchr(data, '\n', count_bytes) : NULL;
    const size_t name_bytes = end != NULL ? (size_t)(end - data) : count_bytes;
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, data, count_bytes) == (ssize_t)count_bytes);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    name = strndup(count_bytes > 0 ? (const char *)data : "", name_bytes);
    REQUIRE(name != NULL);
    struct ml_deobfuscation names = {0};
    REQUIRE(ml_deobfuscation_read(&names, "org.shop", path, &strange) == ML_OK);
    REQUIRE(ml_deobfuscation_finish(&names));
    for (size_t i = 0; i < names.classes_count; i++) {
        REQUIRE(
            names.classes[i].first_member + names.classes[i].members_count <= names.members_count
        );
        ask(&names, names.classes[i].from, count_bytes);
    }
    for (size_t i = 0; i < names.members_count; i++) {
        REQUIRE(names.members[i].class_number < names.classes_count);
    }
    ask(&names, name, count_bytes);
    ml_deobfuscation_fini(&names);
    free(name);
    (void)close(fd);
    return 0;
}
