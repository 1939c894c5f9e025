/* What the program may see of the client: the hooks, and client/memlog.h; and what it may not.
 * Room: client (private).
 */
#ifndef MEMLOG_CLIENT_STATE_VISIBLE_H
#define MEMLOG_CLIENT_STATE_VISIBLE_H

#define ML_VISIBLE __attribute__((visibility("default")))

/* On the declaration of a variable of ours: without it each use looks for the variable's address in
 * a table first, since somebody else's might come before it. */
#define ML_OURS __attribute__((visibility("hidden")))

/* Every event comes through: such functions lie together, on few pages of code. */
#define ML_HOT __attribute__((hot))

/* What calls the next allocator with its guard set lies together, too: client/recording/nested.h
 * knows by that who is at work. */
#define ML_HOOK __attribute__((section("memlog_hooks"), noinline))

#endif
