/* A container that forbids what needs privileges, as Docker's default profile does. */
#ifndef MEMLOG_TESTS_SERVICE_CONTAINER_H
#define MEMLOG_TESTS_SERVICE_CONTAINER_H

/* Forbid namespaces, mounts and Landlock from here on, in this process and those that it starts. 0
 * on success. */
int container_enter(void);

/* Forbid namespaces, and leave mounting to root, in mounts of its own so that errors stay there. 0
 * on success. */
int container_enter_without_unshare(void);

#endif
