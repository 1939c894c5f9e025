/* memlog-service as it is shipped, but its parser of event streams dies of a certain word, as one
 * with a hole would of a hostile byte. It is linked with --wrap, so the service's own code is the
 * same. tests/e2e/poison_test.py runs memlog with it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/process.h"
#include "service/stream/reader.h"

static const char word[] = "memlog-test-poison";

enum ml_status __real_ml_stream_reader_feed(
    struct ml_stream_reader *reader, const uint8_t *bytes, size_t count_bytes
);
enum ml_status __wrap_ml_stream_reader_feed(
    struct ml_stream_reader *reader, const uint8_t *bytes, size_t count_bytes
);
enum ml_status __real_ml_stream_reader_staged(
    struct ml_stream_reader *reader,
    uint32_t lane,
    uint64_t number,
    uint32_t start_bytes,
    uint32_t end_bytes,
    const uint8_t *bytes,
    bool whole
);
enum ml_status __wrap_ml_stream_reader_staged(
    struct ml_stream_reader *reader,
    uint32_t lane,
    uint64_t number,
    uint32_t start_bytes,
    uint32_t end_bytes,
    const uint8_t *bytes,
    bool whole
);

static void die_of(const uint8_t *bytes, size_t count_bytes) {
    if (memmem(bytes, count_bytes, word, sizeof(word) - 1) != NULL) {
        abort();
    }
}

enum ml_status __wrap_ml_stream_reader_feed(
    struct ml_stream_reader *reader, const uint8_t *bytes, size_t count_bytes
) {
    die_of(bytes, count_bytes);
    return __real_ml_stream_reader_feed(reader, bytes, count_bytes);
}

enum ml_status __wrap_ml_stream_reader_staged(
    struct ml_stream_reader *reader,
    uint32_t lane,
    uint64_t number,
    uint32_t start_bytes,
    uint32_t end_bytes,
    const uint8_t *bytes,
    bool whole
) {
    die_of(bytes, end_bytes - start_bytes);
    return __real_ml_stream_reader_staged(
        reader, lane, number, start_bytes, end_bytes, bytes, whole
    );
}

/* --sandbox=auto, and --workers=1 behind it or nothing. */
int main(int argc, char **argv) {
    const struct ml_sandbox_options options = {0};
    (void)argv;
    _exit((int)ml_process_run(&options, argc > 2 ? 1 : 0));
}
