/* What the early library and its program agree on. Room: tests. */
#ifndef MEMLOG_TESTS_ORACLE_MAPS_EARLY_H
#define MEMLOG_TESTS_ORACLE_MAPS_EARLY_H

enum { EARLY_PAGES = 77, EARLY_TOUCHED = 44 };

/* Where the library's constructor has mapped. */
char *early_linked(void);

#endif
