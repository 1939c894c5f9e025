/* Numbers as text. Room: client (private). Context: any, also between vfork and exec.
 *
 * One rule: nothing is called, libc's printf least of all. */
#ifndef MEMLOG_CLIENT_STATE_DECIMAL_H
#define MEMLOG_CLIENT_STATE_DECIMAL_H

#include <stddef.h>
#include <stdint.h>

enum { ML_DECIMAL_DIGITS_MAX = 20 };

/* Write it, and nothing behind it. Returns where it ends. */
static inline char *ml_decimal_put(char *at, uint64_t number) {
    char digits[ML_DECIMAL_DIGITS_MAX];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0) {
        *at++ = digits[--count];
    }
    return at;
}

#endif
