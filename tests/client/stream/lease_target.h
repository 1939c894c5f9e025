/* What the sizes of lease_target's blocks mean. Room: tests. */
#ifndef TESTS_CLIENT_LEASE_TARGET_H
#define TESTS_CLIENT_LEASE_TARGET_H

#define LEASE_NAME "memlog-lease" /* of the memory file */

enum {
    LEASE_FIRST_BYTES = 2000, /* a block of turn n has n bytes more */
    LEASE_TURNS = 1500,
    LEASE_PAIRS = 100000
};

#endif
