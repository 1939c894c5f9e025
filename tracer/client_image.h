/* The client's file as it is put into a process: libmemlog-attached.so, laid out for an address.
 * Room: tracer. Context: any.
 *
 * One rule: it is our own file, built with this program. What is not as it should be is refused. */
#ifndef MEMLOG_TRACER_CLIENT_IMAGE_H
#define MEMLOG_TRACER_CLIENT_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error_message.h"

enum { ML_CLIENT_SEGMENTS_MAX = 8 };

struct ml_client_segment {
    uint64_t start, end; /* whole pages, from the image's start */
    int protection;      /* PROT_* */
};

struct ml_client_image {
    uint8_t *bytes; /* all of it, as it lies in memory */
    size_t count_bytes;
    size_t kept_bytes; /* behind them all is zero */
    uint64_t address;  /* 0: it is not laid out yet */
    uint64_t fingerprint;
    uint64_t block_at, block_bytes; /* ml_attach_block, from the start */
    uint64_t enter_at;              /* ml_attached_enter */
    struct ml_client_segment segments[ML_CLIENT_SEGMENTS_MAX];
    uint32_t segments_count;
    uint64_t relocations_at, relocations_count;
};

/* Read the file. False, with an error message. */
bool ml_client_image_read(
    const char *path, struct ml_client_image *out_image, struct ml_error_message *error
);

/* Lay it out for that address; once. False: it has a relocation that is none of its own. */
bool ml_client_image_lay_out(struct ml_client_image *image, uint64_t address);

void ml_client_image_free(struct ml_client_image *image);

#endif
