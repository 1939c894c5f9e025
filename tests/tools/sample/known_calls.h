/* Call chains whose names and lines are known, for tests of the symbolizer. Room: tests. Context: a
 * small program, `known_places`.
 *
 * One rule: each chain ends in known_place(), which prints where it was called from. */
#ifndef MEMLOG_TESTS_TOOLS_SAMPLE_KNOWN_CALLS_H
#define MEMLOG_TESTS_TOOLS_SAMPLE_KNOWN_CALLS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Print "NAME OFFSET": the ELF address of its return address - 1. */
void known_place(const char *name);

/* The chains in C++. */
void known_cpp(void);

#ifdef __cplusplus
}
#endif

#endif
