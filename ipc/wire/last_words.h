/* Which client a service was working on when it died. Room: ipc (:wire). Context: one page of a
 * memfd that the host makes and reads with pread, and that the service maps before it enters its
 * sandbox.
 *
 * One rule: the process that writes it may have been taken over. It only decides whose data the
 * next service leaves alone. */
#ifndef MEMLOG_IPC_WIRE_LAST_WORDS_H
#define MEMLOG_IPC_WIRE_LAST_WORDS_H

#include <stdint.h>

enum { ML_LAST_WORDS_BYTES = 4096 };

struct ml_last_words {
    /* The host's id of the client whose data is being processed; 0: none, or several at once on
     * several cores. After a death the next service uses one core. */
    uint32_t client;
};

#endif
