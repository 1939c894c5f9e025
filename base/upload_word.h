/* Words that an upload tells as its user wrote them: the machine's name, the program's version.
 * Room: base. Context: any; pure.
 *
 * One rule: such a word stands in JSON, multipart and an address as it is, so nothing is quoted. */
#ifndef MEMLOG_BASE_UPLOAD_WORD_H
#define MEMLOG_BASE_UPLOAD_WORD_H

#include <stdbool.h>
#include <string.h>

enum { ML_UPLOAD_WORD_MAX = 64 };

#define ML_UPLOAD_WORD_WANTS "a word of letters, digits and -_.:+~@/, at most 64"

static inline bool ml_upload_is_word(const char *text) {
    return strlen(text) <= ML_UPLOAD_WORD_MAX &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:+~@/") ==
               strlen(text);
}

#endif
