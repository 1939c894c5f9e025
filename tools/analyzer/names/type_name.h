/* Types in the names of allocating functions. Room: tools. Context: any thread.
 *
 * One rule: a name gives a type only where its function's blocks can be of no other. A function
 * that also constructs what it allocates for may have that constructor inlined, with allocations of
 * its own: it counts where inlined functions are known, or where a type's construction allocates
 * nothing. */
#ifndef MEMLOG_TOOLS_ANALYZER_NAMES_TYPE_NAME_H
#define MEMLOG_TOOLS_ANALYZER_NAMES_TYPE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* What a frame says of the blocks that its callees allocate. */
enum ml_type_word {
    ML_TYPE_STOP,       /* nothing, and its callers do not know better */
    ML_TYPE_GO_ON,      /* it only hands on: ask its caller */
    ML_TYPE_ALLOCATED,  /* they are of the type */
    ML_TYPE_CONSTRUCTED /* the type's constructor allocates them: parts of an object, not objects */
};

/* A longer name is cut, and ends in "...". */
enum { ML_TYPE_NAME_BYTES = 1024 };

struct ml_type_frame {
    const char *function;   /* as people write it */
    const char *linkage;    /* the linker's name */
    bool inlines_are_known; /* frames inlined into it would be told */
};

/* Ask one frame. out_name is written for _ALLOCATED and _CONSTRUCTED alone. */
enum ml_type_word
ml_type_of_frame(const struct ml_type_frame *frame, char out_name[ML_TYPE_NAME_BYTES]);

/* Shorten a type's name to what people know it by: what std::make_shared<T> makes is a T. */
void ml_type_settle(char name[ML_TYPE_NAME_BYTES]);

#endif
