/* What a service was at, for whoever finds it dead. Room: ipc (:wire). Context: one page of a memfd
 * that the host makes and reads with pread, and that the service maps before it is in its sandbox.
 *
 * One rule: it is the word of a process that may have been taken over. It says whose data is left
 * alone next, and nothing else depends on it. */
#ifndef MEMLOG_IPC_WIRE_LAST_WORDS_H
#define MEMLOG_IPC_WIRE_LAST_WORDS_H

#include <stdint.h>

enum { ML_LAST_WORDS_BYTES = 4096 };

struct ml_last_words {
    /* The host's id of the client whose data is being worked on; 0: nobody's, or that of several at
     * once on several cores. The next service of one that has died works on one. */
    uint32_t client;
};

#endif
