/* A seccomp filter of a program's and the call that it is asked about: whatever it is, running it
 * ends, touches nothing but the two, and what does not come to a RET kills. */
#include <string.h>

#include "base/seccomp/filter.h"
#include "tests/fuzz/fuzz.h"

/* A RET that can be reached in the way that filters are walked: forwards alone. */
static int has_return(const struct sock_filter *filter, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (BPF_CLASS(filter[i].code) == BPF_RET) {
            return 1;
        }
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct seccomp_data call;
    if (count_bytes < sizeof(call)) {
        return 0;
    }
    memcpy(&call, data, sizeof(call));
    const size_t count = (count_bytes - sizeof(call)) / sizeof(struct sock_filter);
    /* Of its size exactly: a step behind it is seen. */
    struct sock_filter *filter = malloc(count == 0 ? 1 : count * sizeof(*filter));
    REQUIRE(filter != NULL);
    memcpy(filter, data + sizeof(call), count * sizeof(*filter));
    const uint32_t answer = ml_filter_answer(filter, count, &call);
    REQUIRE(answer == ml_filter_answer(filter, count, &call));
    REQUIRE(answer == SECCOMP_RET_KILL_PROCESS || has_return(filter, count));
    free(filter);
    return 0;
}
