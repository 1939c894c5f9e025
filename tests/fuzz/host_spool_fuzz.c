/* Files that uploads are made of: a report that waits in the spool, keys for S3, a token. Another
 * version of memlog, or anybody with the user's rights, may have written them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/upload/credentials.h"
#include "host/upload/spool.h"
#include "tests/fuzz/folder.h"
#include "tests/fuzz/fuzz.h"

static const char id[] = "0123456789abcdef0123456789abcdef";
static const char *folder;
static struct ml_spool spool;
static char job_path[PATH_MAX];
static char secret_path[PATH_MAX];
static struct ml_error_message said_of_nothing; /* of an empty file of keys */

static void begin(void) {
    struct ml_error_message error = {.text = ""};
    char body_path[PATH_MAX];
    folder = fuzz_folder();
    REQUIRE(ml_spool_open(&spool, folder, &error) == ML_OK);
    ml_spool_body(&spool, id, body_path);
    fuzz_write(body_path, (const uint8_t *)"body", 4);
    (void)snprintf(job_path, sizeof(job_path), "%.4000s/%s.job", folder, id);
    (void)snprintf(secret_path, sizeof(secret_path), "%.4000s/secret", folder);
    (void)setenv("AWS_SHARED_CREDENTIALS_FILE", secret_path, 1);
    (void)setenv("AWS_PROFILE", "default", 1);
    (void)unsetenv("AWS_ACCESS_KEY_ID");
    struct ml_s3_credentials keys;
    fuzz_write(secret_path, (const uint8_t *)"", 0);
    REQUIRE(ml_s3_credentials_find(&keys, &said_of_nothing) != ML_OK);
}

static bool is_same(const struct ml_spool_item *a, const struct ml_spool_item *b) {
    bool same = strcmp(a->upload_id, b->upload_id) == 0 && a->parts == b->parts &&
                strcmp(a->program, b->program) == 0 && a->made_ms == b->made_ms;
    for (unsigned i = 0; same && i < a->parts; i++) {
        same = strcmp(a->etags[i], b->etags[i]) == 0;
    }
    return same && strcmp(a->id, b->id) == 0 && strcmp(a->target, b->target) == 0 &&
           strcmp(a->dump, b->dump) == 0 && a->tries == b->tries && a->harder == b->harder &&
           a->next_ms == b->next_ms;
}

/* Whatever stands in the file: what was understood of it is what is written and read again. */
static void check_job(const uint8_t *data, size_t count_bytes) {
    struct ml_spool_item item;
    struct ml_spool_item again;
    unsigned count = 0;
    fuzz_write(job_path, data, count_bytes);
    /* Taken for whichever target it names. */
    static const char *const targets[] = {"https://h/x", "s3://bucket", ""};
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        if (ml_spool_next(&spool, targets[i], &item, &count)) {
            REQUIRE(count == 1 && strcmp(item.target, targets[i]) == 0);
            REQUIRE(ml_spool_keep(&spool, &item) == ML_OK);
            REQUIRE(ml_spool_next(&spool, targets[i], &again, &count));
            REQUIRE(is_same(&item, &again));
        }
    }
    REQUIRE(ml_spool_has_room(&spool, 1));
}

static void check_secrets(const uint8_t *data, size_t count_bytes) {
    struct ml_s3_credentials keys;
    struct ml_error_message error = {.text = ""};
    char token[64];
    fuzz_write(secret_path, data, count_bytes);
    const enum ml_status status = ml_s3_credentials_find(&keys, &error);
    REQUIRE((status == ML_OK) == (keys.key_id[0] != '\0' && keys.secret[0] != '\0'));
    REQUIRE((status == ML_OK) == (error.text[0] == '\0'));
    /* What is said does not depend on what stands there, so no secret is in it. */
    REQUIRE(status == ML_OK || strcmp(error.text, said_of_nothing.text) == 0);
    error.text[0] = '\0';
    const enum ml_status read = ml_secret_read(secret_path, token, sizeof(token), &error);
    REQUIRE((read == ML_OK) == (error.text[0] == '\0'));
    REQUIRE(read != ML_OK || (token[0] != '\0' && strlen(token) < sizeof(token)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    if (job_path[0] == '\0') {
        begin();
    }
    check_job(data, count_bytes);
    check_secrets(data, count_bytes);
    return 0;
}
