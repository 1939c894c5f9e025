/* Another process's memory, through /proc. Room: tracer. Context: one thread.
 *
 * One rule: code is written here, too: the kernel lets a tracer write what the process itself may
 * not. A write of a few bytes within a page is whole or not at all. */
#ifndef MEMLOG_TRACER_PROCESS_MEMORY_H
#define MEMLOG_TRACER_PROCESS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error_message.h"

/* A descriptor of it; -1, with an error message. */
int ml_memory_open(pid_t pid, struct ml_error_message *error);

/* One tracer at a time: false while another one has its turn, until its descriptor is closed or it
 * has ended. Who has another mount of /proc is not heard of. */
bool ml_memory_take_turn(int memory_fd);

/* False: not all of it is there. */
bool ml_memory_read(int memory_fd, uint64_t address, void *out_bytes, size_t count_bytes);
bool ml_memory_write(int memory_fd, uint64_t address, const void *bytes, size_t count_bytes);

#endif
