/* A packet's header. */
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/message.h"
#include "tests/fuzz/fuzz.h"

/* What is read is written back to the bytes that it came from. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct ml_packet_header header = {0};
    if (ml_packet_header_read(data, count_bytes, &header) == ML_OK) {
        uint8_t again[ML_PACKET_HEADER_BYTES];
        ml_packet_header_write(&header, again);
        if (memcmp(again, data, sizeof(again)) != 0) {
            abort();
        }
    }
    return 0;
}
