/* A file that somebody gave a collector for its names: looked up at the addresses that stand in it
 * and all over it. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/symbols/given.h"

enum { LOOK_UPS = 256, STEP = 16 };

static void look_up(struct ml_symbols_given *given, uint64_t address) {
    const char *name = ml_symbols_given_name(given, address);
    REQUIRE(name != NULL);
    /* It is the same whenever it is asked. */
    REQUIRE(strcmp(name, ml_symbols_given_name(given, address)) == 0);
}

static void check(struct ml_symbols_given *given, const uint8_t *data, size_t count_bytes) {
    const char *build_id = ml_symbols_given_build_id(given);
    const size_t digits = strlen(build_id);
    REQUIRE(digits < ML_GIVEN_BUILD_ID_HEX_BYTES && digits % 2 == 0);
    REQUIRE(strspn(build_id, "0123456789abcdef") == digits);
    look_up(given, UINT64_MAX);
    for (uint64_t i = 0; i < LOOK_UPS; i++) {
        uint64_t address = 0;
        look_up(given, i * STEP);
        if ((i + 1) * sizeof(address) <= count_bytes) {
            memcpy(&address, data + count_bytes - (i + 1) * sizeof(address), sizeof(address));
            look_up(given, address);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, data, count_bytes) == (ssize_t)count_bytes);
    struct ml_symbols_given *given = ml_symbols_given_open(fd);
    if (given != NULL) {
        check(given, data, count_bytes);
    }
    ml_symbols_given_free(given);
    REQUIRE(close(fd) != 0); /* it was taken, whatever it was */
    return 0;
}
