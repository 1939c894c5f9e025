/* Event streams as text: lines into a stream, the stream back into lines, those into the same
 * stream; and any bytes into lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/dev/stream/pack.h"

/* Pack every line up to the first that is refused. Returns whether all were taken. */
static bool pack(struct ml_stream_packer *packer, const char *text, size_t count_bytes) {
    char *line = malloc(count_bytes + 1);
    enum ml_status status = ML_OK;
    REQUIRE(line != NULL);
    for (size_t at = 0; at < count_bytes && status == ML_OK;) {
        const char *end = memchr(text + at, '\n', count_bytes - at);
        const size_t bytes = end != NULL ? (size_t)(end - text) - at : count_bytes - at;
        memcpy(line, text + at, bytes);
        line[bytes] = '\0';
        packer->scratch.error[0] = '\0';
        status = ml_stream_packer_line(packer, line);
        REQUIRE(status == ML_OK || packer->scratch.error[0] != '\0');
        at += bytes + 1;
    }
    free(line);
    return ml_stream_packer_flush(packer) == ML_OK && status == ML_OK;
}

/* Unpacked and packed again it is the same. */
static void check_round_trip(const uint8_t *bytes, size_t count_bytes) {
    char *text = NULL;
    size_t text_bytes = 0;
    FILE *out = open_memstream(&text, &text_bytes);
    REQUIRE(out != NULL);
    REQUIRE(ml_stream_unpack(bytes, count_bytes, out) == ML_OK && fclose(out) == 0);
    struct ml_stream_packer *packer = ml_stream_packer_new();
    REQUIRE(packer != NULL);
    REQUIRE(pack(packer, text, text_bytes));
    REQUIRE(packer->out_count == count_bytes);
    REQUIRE(count_bytes == 0 || memcmp(packer->out, bytes, count_bytes) == 0);
    ml_stream_packer_free(packer);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct ml_stream_packer *packer = ml_stream_packer_new();
    REQUIRE(packer != NULL);
    (void)pack(packer, (const char *)data, count_bytes);
    check_round_trip(packer->out_count > 0 ? packer->out : (const uint8_t *)"", packer->out_count);
    ml_stream_packer_free(packer);
    check_round_trip(data, count_bytes);
    return 0;
}
