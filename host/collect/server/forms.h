/* Reports in the forms of others' receivers: S3's objects, Pyroscope's push and OpenTelemetry's
 * profiles. What the receiver asks about a request whose form it need not know. Room: host.
 * Context: the loop's thread.
 *
 * One rule: whatever the form, a report is a body under a name of its team's, taken once. The body
 * itself is not looked at; the analyzer knows what it is.
 *
 * For S3 the access key's id is the team, and its secret one of the team's write tokens. */
#ifndef MEMLOG_HOST_COLLECT_SERVER_FORMS_H
#define MEMLOG_HOST_COLLECT_SERVER_FORMS_H

#include "host/collect/ledger.h"
#include "host/collect/tokens.h"
#include "host/http/http.h"

struct ml_forms;

struct ml_forms_setup {
    const struct ml_tokens *tokens;
    struct ml_ledger *ledger;
    bool is_secret; /* what comes is encrypted */
    uint64_t body_max_bytes;
};

/* Errors: ML_ENV_SYSTEM, ML_ENV_MEMORY, with an error message. */
ML_NODISCARD enum ml_status ml_forms_open(
    const struct ml_forms_setup *setup, struct ml_forms **out_forms, struct ml_error_message *error
);
void ml_forms_close(struct ml_forms *take_forms);

/* The token that a request brings: as a bearer, as the password of Basic, or by a signature. NULL:
 * none that is known; why it was not, is a line for people. */
const struct ml_token *ml_forms_token(
    const struct ml_forms *forms, const struct ml_http_request *request, const char **out_why
);

/* Whether a report may come so, before anything of its body is read. False: it was answered. */
bool ml_forms_begin(
    const struct ml_forms *forms,
    struct ml_http_request *request,
    const struct ml_token *token,
    uint64_t length
);

/* What uploads in parts that nobody has joined yet have of the team's room. */
uint64_t ml_forms_bytes(struct ml_forms *forms, const char *team);

/* Whether it joins parts that are there already: it wants no room of its own. */
bool ml_forms_is_join(const struct ml_http_request *request);

/* The body has come. True: *body is a report under the name `out_guid` ("": under its hash), and
 * still the caller's. False: it was a step towards one and is used up; it was answered.
 * `out_guid` stays as it is where the form does not name it. */
bool ml_forms_end(
    struct ml_forms *forms,
    struct ml_http_request *request,
    const struct ml_token *token,
    struct ml_body **body,
    char out_guid[ML_GUID_BYTES]
);

/* Requests that are neither a report nor ours. True: it was answered. */
bool ml_forms_other(struct ml_forms *forms, struct ml_http_request *request);

#endif
