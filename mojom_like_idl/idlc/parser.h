/* Words into a tree. Room: mojom_like_idl (idlc). The grammar stands in mojom_like_idl/GRAMMAR.md.
 */
#ifndef MEMLOG_MOJOM_LIKE_IDL_IDLC_PARSER_H
#define MEMLOG_MOJOM_LIKE_IDL_IDLC_PARSER_H

#include "mojom_like_idl/idlc/lexer.h"
#include "mojom_like_idl/idlc/syntax.h"

/* Read the whole file. NULL, and source->failed, when it does not follow the grammar. */
struct contract *parser_read(struct source *source);

#endif
