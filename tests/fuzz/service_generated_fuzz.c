/* What a run-time writes of its code, as a perf map and as a jitdump: the first byte says which. */
#include <sys/mman.h>
#include <unistd.h>

#include "service/generated/naming.h"
#include "tests/fuzz/fuzz.h"

enum { NODES = 40 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    static const struct ml_naming_clock clock = {
        .start_ticks = 100, .start_ns = 1000, .now_ticks = 1 << 20, .now_ns = 1 << 24};
    struct ml_budget budget = {.max_bytes = 1 << 20};
    struct ml_stack_store store;
    if (count_bytes == 0) {
        return 0;
    }
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE(write(fd, data + 1, count_bytes - 1) == (ssize_t)count_bytes - 1);
    ml_stack_store_init(&store, &budget);
    for (uint32_t i = 1; i <= NODES; i++) {
        const struct ml_event event = {
            .kind = ML_EVENT_NODE,
            .node = {.id = i, .frame = ML_FRAME_ADDRESS, .address = i * UINT64_C(0x100)}};
        REQUIRE(ml_stack_store_define(&store, &event) == ML_OK);
        ml_stack_store_await(&store, 0, i - 1);
        ml_stack_store_event(&store, 0, i * UINT64_C(1000));
    }
    const enum ml_code_kind kind = data[0] % 2 == 0 ? ML_CODE_PERF_MAP : ML_CODE_JIT_DUMP;
    (void)!ml_naming_read(&store, fd, kind, &clock, NULL);
    uint32_t named = 0;
    for (uint32_t i = 1; i <= NODES; i++) {
        const struct ml_stored_node *node = ml_stack_store_node(&store, i);
        if (node->frame == ML_FRAME_SCRIPT) {
            const struct ml_stored_string *name = ml_stack_store_string_of(&store, node);
            REQUIRE(name != NULL && name->count_bytes > 0);
            REQUIRE(name->count_bytes <= ML_CODE_NAME_MAX_BYTES);
            named++;
        }
    }
    REQUIRE(named + store.unnamed_count == NODES);
    REQUIRE(store.found_count <= named);
    ml_stack_store_fini(&store);
    REQUIRE(budget.used_bytes == 0);
    (void)close(fd);
    return 0;
}
