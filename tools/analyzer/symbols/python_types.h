/* Types of Python's objects by the address that an object has of its type: a static type object of
 * CPython's in a file. Room: tools. Context: one thread; libelf reads what may come from anybody.
 *
 * One rule: what has not the form of one is none. A static type object, as the file has it, has one
 * reference or can never end, is of the type `type` or of none yet, and has a name and a size. */
#ifndef MEMLOG_TOOLS_ANALYZER_SYMBOLS_PYTHON_TYPES_H
#define MEMLOG_TOOLS_ANALYZER_SYMBOLS_PYTHON_TYPES_H

#include "tools/analyzer/symbols/vtables.h"

/* The name of the type there, as Python prints it, in new memory for free(). NULL: there is none.
 */
char *ml_python_types_find(const struct ml_vtables *vtables, uint64_t address);

#endif
