/* A contract of any bytes: it compiles, or the first error is named with its place. */
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/mojom_like_idl/compile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct pool pool = {0};
    const char *text = pool_copy(&pool, (const char *)data, count_bytes);
    const struct compiled compiled = compile(&pool, "x", text);
    if ((compiled.error == NULL) != (compiled.header != NULL) ||
        (compiled.error != NULL && strncmp(compiled.error, "x:", 2) != 0)) {
        abort();
    }
    pool_fini(&pool);
    return 0;
}
