/* memlog-stream pack|unpack < IN > OUT: event streams from text and to text. Room: tools. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/dev/stream/pack.h"

static int fail(const char *what) {
    fprintf(stderr, "memlog-stream: %s\n", what);
    return EXIT_FAILURE;
}

static int pack(void) {
    struct ml_stream_packer *packer = ml_stream_packer_new();
    char *line = NULL;
    size_t size = 0;
    unsigned number = 0;
    enum ml_status status = packer == NULL ? ML_ENV_MEMORY : ML_OK;
    while (status == ML_OK && getline(&line, &size, stdin) >= 0) {
        number++;
        line[strcspn(line, "\n")] = 0;
        status = ml_stream_packer_line(packer, line);
    }
    free(line);
    if (status == ML_OK) {
        status = ml_stream_packer_flush(packer);
    }
    if (status != ML_OK) {
        const char *error = packer != NULL ? packer->scratch.error : "";
        fprintf(stderr, "memlog-stream: line %u: %s: %s\n", number, ml_status_text(status), error);
        ml_stream_packer_free(packer);
        return EXIT_FAILURE;
    }
    const size_t count = packer->out_count;
    const size_t written = count > 0 ? fwrite(packer->out, 1, count, stdout) : 0;
    ml_stream_packer_free(packer);
    return written == count && fflush(stdout) == 0 ? EXIT_SUCCESS : fail("cannot write");
}

static int unpack(void) {
    char *bytes = NULL;
    size_t count = 0;
    char piece[1 << 16];
    FILE *all = open_memstream(&bytes, &count);
    for (size_t got = 1; all != NULL && got > 0;) {
        got = fread(piece, 1, sizeof(piece), stdin);
        (void)fwrite(piece, 1, got, all);
    }
    if (all == NULL || fclose(all) != 0) {
        free(bytes);
        return fail(ml_status_text(ML_ENV_MEMORY));
    }
    const enum ml_status status = ml_stream_unpack((const uint8_t *)bytes, count, stdout);
    free(bytes);
    return status == ML_OK ? EXIT_SUCCESS : fail(ml_status_text(status));
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "pack") == 0) {
        return pack();
    }
    if (argc == 2 && strcmp(argv[1], "unpack") == 0) {
        return unpack();
    }
    fputs(
        "usage: memlog-stream pack < TEXT > STREAM\n"
        "       memlog-stream unpack < STREAM > TEXT\n"
        "The text form: tools/dev/stream/text.h and tools/dev/stream/pack.h; examples: "
        "tests/golden.\n",
        stderr
    );
    return 2;
}
