/* What went wrong, in words for a person. Room: base. Context: any thread; caller's storage.
 *
 * One rule: a library call that fails fills a complaint and never prints; whoever owns the terminal
 * prints it once. */
#ifndef MEMLOG_BASE_COMPLAINT_H
#define MEMLOG_BASE_COMPLAINT_H

/* Longest complaint: an error text with one path in it. */
enum { ML_COMPLAINT_BYTES = 4608 };

/* All zero is "no complaint". */
struct ml_complaint {
    char text[ML_COMPLAINT_BYTES];
};

/* Write the complaint; the first one stays, so that the cause is named and not its consequence. */
__attribute__((format(printf, 2, 3))) void
ml_complain(struct ml_complaint *complaint, const char *format, ...);

#endif
