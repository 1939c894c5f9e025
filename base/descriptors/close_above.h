/* Close all descriptors behind one number. Room: base. Context: any; between fork and exec too: it
 * allocates nothing.
 *
 * One rule: where the kernel has no close_range (Linux 5.9), or a filter forbids it, none is left
 * open all the same. */
#ifndef MEMLOG_BASE_DESCRIPTORS_CLOSE_ABOVE_H
#define MEMLOG_BASE_DESCRIPTORS_CLOSE_ABOVE_H

void ml_close_above(int last);

#endif
