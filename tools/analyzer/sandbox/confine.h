/* The analyzer's own sandbox. It is up before a dump is read, since dumps, ELF and DWARF may come
 * from anybody. Room: tools. Context: main's thread, before any other.
 *
 * One rule: the policy lists what is permitted, and the rest is refused. The analyzer can read
 * files and write the one that was asked for. It cannot start programs, use the network, reach
 * other processes, type into a terminal or load code later. */
#ifndef MEMLOG_TOOLS_ANALYZER_SANDBOX_CONFINE_H
#define MEMLOG_TOOLS_ANALYZER_SANDBOX_CONFINE_H

/* Enter the sandbox for good. `output_path` is the file that will be written: its folder stays open
 * for writing, and so does that of `second_path`. NULL: none. A kernel without seccomp or Landlock
 * is no error: without a sandbox the analyzer may do what every other program of its user may. */
void ml_confine(const char *output_path, const char *second_path);

/* The same without any file: what is open stays, and nothing is opened any more. For bytes of
 * others that are read for somebody else, whose files must not get into the answer. */
void ml_confine_closed(void);

#endif
