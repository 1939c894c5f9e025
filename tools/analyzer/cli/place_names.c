/* What a collector starts for a file with names: the ELF file on stdin. Over descriptor 3, a
 * stream, it says the file's build id in a line of hex, reads ELF addresses (u64, little-endian)
 * until their end, and answers each with the length of its function's name (u16) and the name, or
 * 0. */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/analyzer/cli/command.h"
#include "tools/analyzer/sandbox/confine.h"
#include "tools/analyzer/symbols/given.h"

enum { COLLECTOR_FD = 3, ADDRESSES_MAX_BYTES = 8 << 20, NAME_MAX_BYTES = 256 };

static bool write_all(const void *bytes, size_t count) {
    const uint8_t *at = bytes;

    while (count > 0) {
        const ssize_t written = write(COLLECTOR_FD, at, count);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        at += written > 0 ? written : 0;
        count -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* All of them. NULL: no memory, or they are too many. Owner: free. */
static uint64_t *addresses_read(size_t *out_count) {
    uint8_t *bytes = malloc(ADDRESSES_MAX_BYTES);
    size_t count = 0;
    ssize_t got = 1;

    while (bytes && got != 0 && count < ADDRESSES_MAX_BYTES) {
        got = read(COLLECTOR_FD, bytes + count, ADDRESSES_MAX_BYTES - count);
        if (got < 0 && errno != EINTR) {
            free(bytes);
            return NULL;
        }
        count += got > 0 ? (size_t)got : 0;
    }
    *out_count = count / sizeof(uint64_t);
    return (uint64_t *)(void *)bytes;
}

static bool answer(struct ml_symbols_given *given, uint64_t address) {
    uint8_t bytes[2 + NAME_MAX_BYTES];
    const char *name = ml_symbols_given_name(given, address);
    const size_t count = strlen(name);
    /* As long as a name of a report may be. */
    const uint16_t kept = (uint16_t)(count < NAME_MAX_BYTES ? count : NAME_MAX_BYTES);

    bytes[0] = (uint8_t)kept;
    bytes[1] = (uint8_t)(kept >> 8);
    memcpy(bytes + 2, name, kept);
    return write_all(bytes, 2 + (size_t)kept);
}

static int run(const struct ml_command *command, char *const *words) {
    struct ml_symbols_given *given = NULL;
    uint64_t *addresses = NULL;
    size_t count = 0;
    int exit_code = ML_EXIT_OK;
    bool done = false;

    if (!ml_command_read(command, words, NULL, NULL, &exit_code)) {
        return exit_code;
    }
    ml_confine_closed();
    given = ml_symbols_given_open(STDIN_FILENO);
    if (given) {
        const char *build_id = ml_symbols_given_build_id(given);
        done = write_all(build_id, strlen(build_id)) && write_all("\n", 1);
        addresses = done ? addresses_read(&count) : NULL;
        done = addresses != NULL;
    }
    for (size_t i = 0; done && i < count; i++) {
        done = answer(given, le64toh(addresses[i]));
    }
    free(addresses);
    ml_symbols_given_free(given);
    return done ? ML_EXIT_OK : ML_EXIT_FAILED;
}

const struct ml_command ml_command_place_names = {
    .table =
        {.program = "memlog-analyzer",
         .name = "place-names",
         .summary = "functions at addresses of a file",
         .usage = "",
         .about = "Reads an ELF file on stdin and answers over descriptor 3 which functions are at "
                  "addresses of it. memlog collect symbolize starts it for each file.",
         .example = "memlog-analyzer place-names < /bin/ls"},
    .dumps = ML_DUMPS_NONE,
    .run = run,
};
