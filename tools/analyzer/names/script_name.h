/* Names of functions as run-times write them in perf maps and jitdumps. Room: tools. Context: any;
 * hostile bytes.
 *
 * One rule: one function has one name, however often the run-time compiled it: what says how it was
 * compiled goes. What is not understood stays as it is. */
#ifndef MEMLOG_TOOLS_ANALYZER_NAMES_SCRIPT_NAME_H
#define MEMLOG_TOOLS_ANALYZER_NAMES_SCRIPT_NAME_H

#include <stdint.h>

#include "tools/analyzer/model/profile.h"

/* The part of the text that names the function: "JS:*work /a.js:3:7", "LazyCompile:~work /a.js:3"
 * become "work /a.js:3:7", "work /a.js:3". It ends where the text ends. */
struct ml_profile_text ml_script_name(struct ml_profile_text text);

/* A name's parts, all within it. Without a file the name is the function. */
struct ml_script_parts {
    struct ml_profile_text function, file;
    uint32_t line; /* 0: not known */
};

/* Of "work /a.js:3:7" (V8), "py::work:/a.py" and "py::work:/a.py:3" (Python). */
struct ml_script_parts ml_script_parts(struct ml_profile_text name);

#endif
