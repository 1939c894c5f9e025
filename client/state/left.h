/* Frames of ours that the program may leave by a throw or a thread's cancellation. Room: client
 * (private). Context: the functions named are called by the unwinder of libgcc, on the thread whose
 * frame it is.
 *
 * One rule: such a function undoes in the clean-up phase, and lets the unwinder go on. */
#ifndef MEMLOG_CLIENT_STATE_LEFT_H
#define MEMLOG_CLIENT_STATE_LEFT_H

#include <stdint.h>

/* _UA_CLEANUP_PHASE and _URC_CONTINUE_UNWIND of the C++ ABI. */
enum { ML_LEFT_CLEANUP_PHASE = 2, ML_LEFT_GO_ON = 8 };

/* The parameters of a personality routine of that ABI. */
#define ML_LEFT_PARAMETERS int version, int actions, uint64_t kind, void *thrown, void *context

/* First line of a function: `function`, of those parameters, is called when its frame is left. It
 * costs nothing else. 0x1b: a 4-byte address relative to itself. */
#define ML_LEFT_BY(function) __asm__ volatile(".cfi_personality 0x1b, " #function)

#endif
