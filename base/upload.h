/* What `memlog run` and the analyzer both know of an upload: how large its body may be, and which
 * words of their user's it tells. Room: base. Context: any; pure.
 *
 * One rule: such a word stands in JSON, multipart and an address as it is, so nothing is quoted. */
#ifndef MEMLOG_BASE_UPLOAD_H
#define MEMLOG_BASE_UPLOAD_H

#include <stdbool.h>
#include <string.h>

enum {
    /* The least that --upload-max-bytes takes: the sums of any tree and a few stacks are less. */
    ML_UPLOAD_LEAST_BYTES = 4096,
    ML_UPLOAD_MOST_BYTES = 10000000, /* its default: Chromium's bound for a report */
    /* The most that --upload-prune takes. A whole body has some hundred MB at most. */
    ML_UPLOAD_PRUNE_MAX = 100000,
    ML_UPLOAD_WORD_MAX = 64, /* the machine's name, the program's version */
};

#define ML_UPLOAD_WORD_WANTS "a word of letters, digits and -_.:+~@/, at most 64"

static inline bool ml_upload_is_word(const char *text) {
    return strlen(text) <= ML_UPLOAD_WORD_MAX &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:+~@/") ==
               strlen(text);
}

#endif
