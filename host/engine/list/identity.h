/* Which program an unrecorded process runs, by /proc. Room: host.
 *
 * Name, command line and executable are read one after the other, and an exec may come between any
 * two of them. So the image is looked at before and after. If it has changed only the name is
 * noted, which was read first. So it is of a process that ends, whose image cannot be looked at any
 * more. Where a name is known already nothing is noted then: whose it is may be another. */
#ifndef MEMLOG_HOST_ENGINE_LIST_IDENTITY_H
#define MEMLOG_HOST_ENGINE_LIST_IDENTITY_H

#include "host/engine/state.h"

/* Whether its program is known. */
bool ml_list_has_name(const struct ml_unrecorded *one);

/* Read name, command line and executable in /proc. What cannot be read stays as it was. Of a zombie
 * only the name can be read, and is noted if none is known. False: another program has taken its
 * place since `facts` were read, and nothing is noted, as some of it may be that program's. */
bool ml_list_identify(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_process_facts *facts
);

/* The same of whichever program it runs now, whose image becomes its own; `facts` were read last.
 */
void ml_list_identify_newest(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_process_facts *facts
);

/* Its identity from what another process knows; `path` may be "", `argv` NULL. */
void ml_list_copy_identity(
    struct ml_unrecorded *one, const char *name, const char *path, char *const *argv
);

/* Whether the image that it runs now is the one that its identity was read of. */
bool ml_list_is_identified(const struct ml_unrecorded *one);

/* It runs another image now: forget what was known of the one before. */
void ml_list_forget_identity(struct ml_unrecorded *one);

#endif
