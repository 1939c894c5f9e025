/* A container that forbids what needs privileges, as Docker's default profile does. */
#ifndef MEMLOG_TESTS_SERVICE_CONTAINER_H
#define MEMLOG_TESTS_SERVICE_CONTAINER_H

/* No namespaces, no mounts, no Landlock from here on, in this process and those that it starts. 0
 * when done. */
int container_enter(void);

/* Namespaces are forbidden but mounting is not, for who is root: in mounts of its own, so that what
 * goes wrong goes wrong there. 0 when done. */
int container_enter_without_unshare(void);

#endif
