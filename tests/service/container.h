/* A container that forbids what needs privileges, as Docker's default profile does. */
#ifndef MEMLOG_TESTS_SERVICE_CONTAINER_H
#define MEMLOG_TESTS_SERVICE_CONTAINER_H

/* No namespaces, no mounts, no Landlock from here on, in this process and those that it starts. 0
 * when done. */
int container_enter(void);

#endif
