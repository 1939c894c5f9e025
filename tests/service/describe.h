/* A client described as its host does it. Room: tests. */
#ifndef MEMLOG_TESTS_SERVICE_DESCRIBE_H
#define MEMLOG_TESTS_SERVICE_DESCRIBE_H

#include <string.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/session/client.h"

/* By its name, one word of a command line, and its file; "": none. */
static inline void
describe(struct ml_client *client, const char *name, const char *word, const char *executable) {
    const struct ml_string line = {word, (uint32_t)strlen(word)};
    const struct memlog_service_process_facts facts = {
        .name = {name, (uint32_t)strlen(name)},
        .command_line = {.items = &line, .count = word[0] != 0},
        .executable = {executable, (uint32_t)strlen(executable)}};
    ml_client_describe(client, &facts);
}

#endif
