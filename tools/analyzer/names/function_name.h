/* Function names that fit a line. Room: tools. Context: any thread.
 *
 * One rule: "..." stands for what is left out, so nobody takes the short form for the name. */
#ifndef MEMLOG_TOOLS_ANALYZER_NAMES_FUNCTION_NAME_H
#define MEMLOG_TOOLS_ANALYZER_NAMES_FUNCTION_NAME_H

#include <stddef.h>

/* `name` in at most `columns` columns (base/printable.h; at least 3): as it is; else without return
 * type and template arguments; else without parameters; else with its middle left out. Owner:
 * out_name, `out_bytes` long, is always NUL-terminated. */
void ml_function_name_fit(const char *name, size_t columns, char *out_name, size_t out_bytes);

/* The same of the name of a file, which has no such parts: as it is, or with its middle left out.
 */
void ml_file_name_fit(const char *name, size_t columns, char *out_name, size_t out_bytes);

/* The name without return type, with "<...>" for template arguments. */
void ml_function_name_bare(const char *name, char *out_name, size_t out_bytes);

/* The function and what it stands in: "Box::put" of "void shop::Box<int>::put(int) const". */
void ml_function_name_brief(const char *name, char *out_name, size_t out_bytes);

#endif
