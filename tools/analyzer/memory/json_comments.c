#include "tools/analyzer/memory/json_comments.h"

#include <string.h>

void ml_json_drop_comments(char *bytes, size_t count_bytes) {
    for (size_t at = 0; at < count_bytes;) {
        const char *end = memchr(bytes + at, '\n', count_bytes - at);
        const size_t next = end ? (size_t)(end - bytes) + 1 : count_bytes;
        size_t first = at;
        while (first < next && (bytes[first] == ' ' || bytes[first] == '\t')) {
            first++;
        }
        if (next - first >= 2 && bytes[first] == '/' && bytes[first + 1] == '/') {
            memset(bytes + at, ' ', next - at - (end ? 1 : 0));
        }
        at = next;
    }
}
