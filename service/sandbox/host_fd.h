/* Where the service finds its host. Room: service. Context: constant.
 *
 * One rule: these two descriptors and stderr are all that the service is born with. */
#ifndef MEMLOG_SERVICE_SANDBOX_HOST_FD_H
#define MEMLOG_SERVICE_SANDBOX_HOST_FD_H

/* A connected SOCK_SEQPACKET socket, inherited at this number from the host that starts the
 * service. */
enum { ML_SERVICE_HOST_FD = 3 };

/* A memfd of ML_LAST_WORDS_BYTES (ipc/wire/last_words.h) that can be written; may be missing. */
enum { ML_SERVICE_WORDS_FD = 4 };

#endif
