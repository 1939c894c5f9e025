/* The analyzer's own sandbox, up before it reads a dump: ELF, DWARF and dumps may come from
 * anybody. Room: tools. Context: main's thread, before any other.
 *
 * One rule: reading stays possible, that is what it is for; nothing else of the machine is: no
 * other program, no network, no process, no terminal to type into, no code that comes later, no
 * file written but the one that was asked for. What is permitted is a list; the rest is refused. */
#ifndef MEMLOG_TOOLS_ANALYZER_SANDBOX_CONFINE_H
#define MEMLOG_TOOLS_ANALYZER_SANDBOX_CONFINE_H

/* Put them up for good. `output_path`: the file that will be written, its folder stays open for
 * writing; NULL: none. What the kernel has not (seccomp, Landlock) is left out silently: without
 * a sandbox the analyzer is what every other program of its user's is. */
void ml_confine(const char *output_path);

#endif
