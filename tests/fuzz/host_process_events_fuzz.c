/* A packet of the process connector: the kernel's, but its length and kinds are another version's.
 */
#include <stdbool.h>
#include <string.h>

#include "host/process/events.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    /* Of its own, so that who reads beyond it is seen. */
    uint8_t *packet = malloc(count_bytes + (count_bytes == 0 ? 1 : 0));
    REQUIRE(packet != NULL);
    if (count_bytes > 0) {
        memcpy(packet, data, count_bytes);
    }
    const struct ml_process_event event = ml_process_event_parse(packet, count_bytes);
    REQUIRE((unsigned)event.kind <= ML_PROCESS_EVENT_ENDED);
    const bool may_tell =
        event.kind == ML_PROCESS_EVENT_BORN || event.kind == ML_PROCESS_EVENT_ENDED;
    REQUIRE(may_tell || event.parent == 0);
    REQUIRE(event.kind == ML_PROCESS_EVENT_ENDED || event.wait_status == 0);
    REQUIRE(event.kind != ML_PROCESS_EVENT_OTHER || event.pid == 0);
    free(packet);
    return 0;
}
