/* What the program may see of the client: the hooks, and client/memlog.h. Room: client (private).
 */
#ifndef MEMLOG_CLIENT_VISIBLE_H
#define MEMLOG_CLIENT_VISIBLE_H

#define ML_VISIBLE __attribute__((visibility("default")))

#endif
