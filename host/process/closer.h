/* Closes descriptors that strangers have sent. Room: host. Context: the host's one thread.
 *
 * One rule: a close may wait for as long as the sender wants (a socket with SO_LINGER, also inside
 * of another one; a file system of the sender's). The host never waits: a thread of its own closes
 * each. */
#ifndef MEMLOG_HOST_PROCESS_CLOSER_H
#define MEMLOG_HOST_PROCESS_CLOSER_H

enum { ML_CLOSER_THREADS_MAX = 64 };

/* Close it at some time. While ML_CLOSER_THREADS_MAX closes wait it stays open: a sender can use up
 * descriptors, which the host reports, but not the host's time.
 *
 * Owner: taken. */
void ml_closer_close(int take_fd);

#endif
