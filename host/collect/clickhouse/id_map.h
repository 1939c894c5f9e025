/* A table from ids to what belongs to each. Room: host. Context: one thread.
 *
 * Ids are keyed hashes (host/collect/ids.h), so their bits are as good as any hash's. */
#ifndef MEMLOG_HOST_COLLECT_CLICKHOUSE_ID_MAP_H
#define MEMLOG_HOST_COLLECT_CLICKHOUSE_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ml_id_map_entry {
    int64_t id; /* 0: free */
    int64_t first, second;
};

/* All zero at first. Owner: ml_id_map_fini. */
struct ml_id_map {
    struct ml_id_map_entry *slots;
    size_t slots_count, count;
};

void ml_id_map_fini(struct ml_id_map *map);

/* NULL: it is not there. Valid until the next put. */
const struct ml_id_map_entry *ml_id_map_find(const struct ml_id_map *map, int64_t id);

/* Put one, or put it in the place of what the id had; id 0 is passed over. False: no memory. */
bool ml_id_map_put(struct ml_id_map *map, struct ml_id_map_entry entry);

#endif
