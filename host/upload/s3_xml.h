/* What S3 answers and is sent: elements of XML and a header. The server may be anybody's. Room:
 * host. Context: any; pure.
 *
 * One rule: only a plain word is taken, as it becomes part of an address, of XML or of a message.
 */
#ifndef MEMLOG_HOST_UPLOAD_S3_XML_H
#define MEMLOG_HOST_UPLOAD_S3_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "host/upload/spool.h"

/* What makes one object of as many parts as there may be. */
enum { ML_S3_JOIN_BYTES = ML_SPOOL_PARTS_MAX * (ML_SPOOL_ETAG_BYTES + 80) + 128 };

/* The text between <NAME> and </NAME>; false: there is none that fits and is plain. */
bool ml_s3_element(const char *xml, const char *name, char *out_text, size_t text_bytes);

/* Joining may fail behind a status that says it did not. */
bool ml_s3_is_error(const char *xml);

/* A part's name, as the server's header has it; false: none that is plain. */
bool ml_s3_etag(const char *header, char out_etag[ML_SPOOL_ETAG_BYTES]);

/* `text` as a query has it: letters, digits and -._~ as they are. Answers its length; what does not
 * fit is left out. */
size_t ml_s3_encode(const char *text, char *out_query, size_t query_bytes);

/* The request that joins the item's parts. */
void ml_s3_join(const struct ml_spool_item *item, char out_xml[ML_S3_JOIN_BYTES]);

#endif
