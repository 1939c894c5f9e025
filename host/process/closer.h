/* Closes what strangers have sent. Room: host. Context: the host's one thread.
 *
 * One rule: a close may wait for as long as whoever sent the descriptor wants (a socket with
 * SO_LINGER, also inside of another one; a file system of his own), and the host never waits: each
 * is closed by a thread of its own. */
#ifndef MEMLOG_HOST_PROCESS_CLOSER_H
#define MEMLOG_HOST_PROCESS_CLOSER_H

enum { ML_CLOSER_THREADS_MAX = 64 };

/* Close it, some time. While ML_CLOSER_THREADS_MAX of them wait it stays open: who goes on so takes
 * the host's descriptors, of which it says when there are too few, and not its time.
 *
 * Owner: taken. */
void ml_closer_close(int take_fd);

#endif
