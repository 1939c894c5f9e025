/* What of the client the program can see: the hooks and client/memlog.h. Room: client (private).
 */
#ifndef MEMLOG_CLIENT_STATE_VISIBLE_H
#define MEMLOG_CLIENT_STATE_VISIBLE_H

#define ML_VISIBLE __attribute__((visibility("default")))

/* For the declaration of a variable. Without it each use loads the variable's address from a table
 * first, since another object might define the same name. */
#define ML_OURS __attribute__((visibility("hidden")))

/* For functions that every event calls: they lie together, on few pages of code. */
#define ML_HOT __attribute__((hot))

/* For functions that call the next allocator with the guard set: by their section
 * client/recording/nested.h recognizes them. */
#define ML_HOOK __attribute__((section("memlog_hooks"), noinline))

/* For functions that call the program's on, which may allocate: by their section
 * client/recording/record.c leaves their frames out of stacks. */
#define ML_BETWEEN __attribute__((section("memlog_between"), noinline))

#endif
