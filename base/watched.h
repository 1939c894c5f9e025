/* How the host starts an analyzer whose end it hears of, though it is no child of the host's. Room:
 * base. Context: any.
 *
 * One rule: the analyzer begins with this word, forks, and does its work in the child. What is left
 * of it writes the child's wait status, an int, to this descriptor, and ends the child when nobody
 * reads there any more. */
#ifndef MEMLOG_BASE_WATCHED_H
#define MEMLOG_BASE_WATCHED_H

#define ML_WATCHED_WORD "--watched"

/* After its standard three and two files: host/analysis/analyzer.h. */
enum { ML_WATCHED_FD = 5 };

#endif
