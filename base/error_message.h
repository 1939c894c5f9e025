/* What went wrong, in words for a person. Room: base. Context: any thread; caller's storage.
 *
 * One rule: a library call that fails fills an error message and never prints; whoever owns the
 * terminal prints it once. */
#ifndef MEMLOG_BASE_ERROR_MESSAGE_H
#define MEMLOG_BASE_ERROR_MESSAGE_H

/* Longest error message: an error text with one path in it. */
enum { ML_ERROR_MESSAGE_BYTES = 4608 };

/* All zero is "no error". */
struct ml_error_message {
    char text[ML_ERROR_MESSAGE_BYTES];
};

/* Write the error message, unless there is one: the first names the cause, later ones consequences.
 */
__attribute__((format(printf, 2, 3))) void
ml_error_set(struct ml_error_message *error, const char *format, ...);

#endif
