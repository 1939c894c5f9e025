/* A policy from a file, and the components that it gives rows of every kind. */
#include <string.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/memory/policy.h"

/* One stack of a function in a library. */
static struct ml_code_file files[] = {{.path = {.bytes = "/usr/lib/libx.so", .count_bytes = 16}}};
static struct ml_symbol symbols[] = {{.function = "x::Box<int>::put(int)", .file = "x.cc"}};
static struct ml_place places[] = {{.kind = ML_FRAME_ADDRESS, .file = 0, .symbols_count = 1}};
static struct ml_stack_node nodes[] = {{.parent = ML_STACKS_NONE, .place = 0}};
static const struct ml_stacks stacks = {
    .files = files, .places = places, .nodes = nodes, .nodes_count = 1, .symbols = symbols};

static void sort(struct ml_policy *policy, struct ml_row_text *text) {
    for (unsigned kind = 0; kind < ML_COMPONENTS; kind++) {
        const struct ml_row row = {
            .allocator = kind == ML_COMPONENT_HEAP    ? ML_ROW_MALLOC
                         : kind == ML_COMPONENT_SLACK ? ML_ROW_SLACK
                         : kind % 2 == 0              ? ML_ROW_MMAP
                                                      : ML_ROW_UNHOOKED,
            .kind = kind,
            .permissions = MEMLOG_SERVICE_MEMORY_PERMISSION_READ,
            .path = {.bytes = "/usr/lib/libx.so", .count_bytes = 16},
            .name = {.bytes = "arena", .count_bytes = 5},
            .file = {.bytes = "/usr/lib/libx.so", .count_bytes = 16},
            .node = kind % 3 == 0 ? 0 : ML_STACKS_NONE};
        const uint32_t component = ml_policy_component(policy, &stacks, &row, text);
        REQUIRE(component < policy->components.count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct ml_policy policy;
    struct ml_error_message error = {.text = ""};
    static struct ml_row_text text = {.node = ML_STACKS_NONE};
    const bool done = ml_policy_read(&policy, (const char *)data, count_bytes, "my.json", &error);

    REQUIRE(done == (error.text[0] == '\0'));
    if (done) {
        sort(&policy, &text);
    } else {
        REQUIRE(strncmp(error.text, "my.json: ", 9) == 0);
    }
    ml_policy_fini(&policy);
    return 0;
}
