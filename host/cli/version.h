/* Which memlog this is. Room: host. Context: any. */
#ifndef MEMLOG_HOST_CLI_VERSION_H
#define MEMLOG_HOST_CLI_VERSION_H

#include <stdio.h>

/* Its version, and below it the build id of the running program, as `readelf -n` and debuginfod
 * have it: two builds of one version differ in it. */
void ml_version_say(FILE *out);

#endif
