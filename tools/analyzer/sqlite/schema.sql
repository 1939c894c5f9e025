-- What `memlog convert --to=sqlite` makes. Up to "Our own" names and columns are those of
-- Perfetto's trace_processor, columns that say nothing of a heap left out, and `dump` added: of several
-- dumps of a run each row tells its own (memlog_dump.id).

CREATE TABLE process(
    id INTEGER PRIMARY KEY, -- = upid
    upid INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    name TEXT,
    start_ts INTEGER, -- ns, BOOTTIME as every ts
    end_ts INTEGER, -- NULL: it ran at the dump
    parent_upid INTEGER,
    cmdline TEXT,
    memlog_id INTEGER NOT NULL -- ours: of one process the same in all dumps of its run
);

CREATE TABLE thread(
    id INTEGER PRIMARY KEY, -- = utid
    utid INTEGER,
    tid INTEGER, -- of the main thread; NULL: the dump knows the name alone
    name TEXT,
    upid INTEGER NOT NULL REFERENCES process(id),
    is_main_thread INTEGER NOT NULL,
    start_ts INTEGER
);

-- What went wrong, and how much was told: idx is the pid.
CREATE TABLE stats(
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    idx INTEGER,
    severity TEXT NOT NULL, -- info, data_loss
    source TEXT NOT NULL,
    value INTEGER NOT NULL
);

CREATE TABLE process_counter_track(
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL, -- live bytes, allocated bytes
    upid INTEGER NOT NULL REFERENCES process(id),
    unit TEXT NOT NULL
);

CREATE TABLE counter(
    id INTEGER PRIMARY KEY,
    ts INTEGER NOT NULL,
    track_id INTEGER NOT NULL REFERENCES process_counter_track(id),
    value INTEGER NOT NULL
);

CREATE TABLE stack_profile_mapping(
    id INTEGER PRIMARY KEY,
    build_id TEXT, -- hex
    exact_offset INTEGER,
    start_offset INTEGER,
    start INTEGER,
    "end" INTEGER,
    load_bias INTEGER,
    name TEXT -- path
);

CREATE TABLE stack_profile_frame(
    id INTEGER PRIMARY KEY,
    name TEXT, -- the function, not what was inlined into it
    mapping INTEGER NOT NULL REFERENCES stack_profile_mapping(id),
    rel_pc INTEGER, -- ELF address
    symbol_set_id INTEGER, -- NULL: no names were found
    deobfuscated_name TEXT -- by a map of ProGuard or R8; NULL: none has it
);

CREATE TABLE stack_profile_symbol(
    id INTEGER PRIMARY KEY,
    symbol_set_id INTEGER NOT NULL, -- one frame's functions, innermost inlined one first
    name TEXT,
    source_file TEXT,
    line_number INTEGER,
    inlined INTEGER NOT NULL
);

CREATE TABLE stack_profile_callsite(
    id INTEGER PRIMARY KEY,
    depth INTEGER NOT NULL, -- 0: outermost
    parent_id INTEGER,
    frame_id INTEGER NOT NULL REFERENCES stack_profile_frame(id)
);

-- Of each stack a row of what was allocated and, if any, one of what was freed, below 0: the sum of
-- a stack's rows is live. Of several dumps each has what changed since the one before: the sum of all
-- rows is live at the last one, and the rows up to a dump (dump <= N) make its figures.
CREATE TABLE heap_profile_allocation(
    id INTEGER PRIMARY KEY,
    ts INTEGER NOT NULL,
    upid INTEGER NOT NULL REFERENCES process(id),
    heap_name TEXT NOT NULL,
    callsite_id INTEGER NOT NULL REFERENCES stack_profile_callsite(id),
    count INTEGER NOT NULL,
    size INTEGER NOT NULL,
    is_free INTEGER NOT NULL, -- 1: of what was freed, also where a later dump takes some back
    dump INTEGER NOT NULL REFERENCES memlog_dump(id)
);

-- Mappings as the kernel told them: of the dump, or of an ended process's largest reading. Sums
-- are smaps' totals. A reading that several dumps hold stands here once, with the first of them.
CREATE TABLE profiler_smaps(
    id INTEGER PRIMARY KEY,
    upid INTEGER NOT NULL REFERENCES process(id),
    ts INTEGER NOT NULL, -- when they were read
    path TEXT NOT NULL,
    path_trimmed TEXT NOT NULL, -- without " (deleted)"
    is_deleted INTEGER NOT NULL,
    size_kb INTEGER NOT NULL,
    private_dirty_kb INTEGER NOT NULL,
    swap_kb INTEGER NOT NULL,
    start_address INTEGER NOT NULL,
    protection_flags INTEGER NOT NULL, -- execute 1, write 2, read 4, shared 128
    private_clean_resident_kb INTEGER NOT NULL,
    shared_dirty_resident_kb INTEGER NOT NULL,
    shared_clean_resident_kb INTEGER NOT NULL,
    proportional_resident_kb INTEGER NOT NULL,
    rss_kb INTEGER NOT NULL,
    anonymous_kb INTEGER NOT NULL,
    dump INTEGER NOT NULL REFERENCES memlog_dump(id)
);

-- heapprofd's flame graph: of each process and moment a row for each call site that led to an
-- allocation. trace_processor has it as a function of (ts, upid, profile_type); SQLite knows such
-- functions of its own tables alone, so here they are columns. A row is a call site; a function that
-- is called from two places has two.
CREATE VIEW experimental_flamegraph AS
WITH RECURSIVE snapshot(ts, upid, heap_name) AS (
    SELECT DISTINCT p.ts, p.upid, h.heap_name FROM memlog_process p
    JOIN (SELECT DISTINCT upid, heap_name FROM heap_profile_allocation) h USING (upid)
),
own(ts, upid, heap_name, site, count, size, alloc_count, alloc_size) AS (
    SELECT
        s.ts, s.upid, s.heap_name, a.callsite_id, sum(a.count), sum(a.size),
        sum(a.count * (NOT a.is_free)), sum(a.size * (NOT a.is_free))
    FROM snapshot s
    JOIN heap_profile_allocation a
        ON a.upid = s.upid AND a.heap_name = s.heap_name AND a.ts <= s.ts
    GROUP BY 1, 2, 3, 4
),
path(leaf, site) AS (
    SELECT DISTINCT callsite_id, callsite_id FROM heap_profile_allocation
    UNION ALL
    SELECT path.leaf, c.parent_id FROM path JOIN stack_profile_callsite c ON c.id = path.site
    WHERE c.parent_id IS NOT NULL
)
SELECT
    c.id AS id,
    c.depth AS depth,
    coalesce(f.deobfuscated_name, f.name) AS name,
    m.name AS map_name,
    sum(own.count * (path.leaf = path.site)) AS count,
    sum(own.count) AS cumulative_count,
    sum(own.size * (path.leaf = path.site)) AS size,
    sum(own.size) AS cumulative_size,
    sum(own.alloc_count * (path.leaf = path.site)) AS alloc_count,
    sum(own.alloc_count) AS cumulative_alloc_count,
    sum(own.alloc_size * (path.leaf = path.site)) AS alloc_size,
    sum(own.alloc_size) AS cumulative_alloc_size,
    c.parent_id AS parent_id,
    s.source_file AS source_file,
    s.line_number AS line_number,
    own.ts AS ts,
    own.upid AS upid,
    'native' AS profile_type,
    own.heap_name AS heap_name
FROM own
JOIN path ON path.leaf = own.site
JOIN stack_profile_callsite c ON c.id = path.site
JOIN stack_profile_frame f ON f.id = c.frame_id
JOIN stack_profile_mapping m ON m.id = f.mapping
LEFT JOIN (
    SELECT symbol_set_id, source_file, line_number, max(id) FROM stack_profile_symbol
    GROUP BY symbol_set_id
) s USING (symbol_set_id)
GROUP BY own.ts, own.upid, own.heap_name, c.id;

-- Our own.

CREATE TABLE memlog_dump(
    id INTEGER PRIMARY KEY, -- by time, from 1
    ts INTEGER NOT NULL,
    time TEXT NOT NULL,
    reason TEXT NOT NULL,
    "trigger" TEXT NOT NULL, -- what fired it; empty: nothing, or the dump does not say
    program TEXT NOT NULL,
    complete INTEGER NOT NULL, -- 1: nothing was lost
    live_bytes INTEGER NOT NULL,
    live_blocks INTEGER NOT NULL,
    peak_bytes INTEGER NOT NULL, -- of all processes together
    peak_blocks INTEGER NOT NULL,
    total_bytes INTEGER NOT NULL,
    total_blocks INTEGER NOT NULL,
    covered INTEGER NOT NULL, -- 1: nobody's memory is known to have gone unseen
    uncovered TEXT NOT NULL -- whose, in the words of memlog report
);

CREATE TABLE memlog_process(
    dump INTEGER NOT NULL REFERENCES memlog_dump(id),
    upid INTEGER NOT NULL REFERENCES process(id),
    ts INTEGER NOT NULL, -- of its figures: the dump's, or its end
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    complete INTEGER NOT NULL,
    sampling_bytes INTEGER NOT NULL,
    footprint_bytes INTEGER NOT NULL,
    resident_bytes INTEGER NOT NULL,
    inherited_bytes INTEGER NOT NULL,
    inherited_blocks INTEGER NOT NULL,
    live_bytes INTEGER NOT NULL,
    live_blocks INTEGER NOT NULL,
    peak_bytes INTEGER NOT NULL,
    peak_blocks INTEGER NOT NULL,
    total_bytes INTEGER NOT NULL,
    total_blocks INTEGER NOT NULL,
    processes INTEGER NOT NULL, -- that the row stands for: 1, or as many as were folded
    PRIMARY KEY (dump, upid)
) WITHOUT ROWID;

-- Processes of the tree without a profile: in process, and in no other table of heaps.
CREATE TABLE memlog_unrecorded(
    dump INTEGER NOT NULL REFERENCES memlog_dump(id),
    upid INTEGER NOT NULL REFERENCES process(id),
    role TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    idle INTEGER NOT NULL, -- 1: memlog is in it, and nothing was allocated since its fork
    private_bytes INTEGER, -- as last read; NULL: nobody has read it
    resident_bytes INTEGER, -- read with it
    processes INTEGER NOT NULL, -- as in memlog_process
    PRIMARY KEY (dump, upid)
) WITHOUT ROWID;

-- What the memory of a process is made of, in the words of memlog report. The sums are those of
-- profiler_smaps with the same ts.
CREATE TABLE memlog_component(
    dump INTEGER NOT NULL REFERENCES memlog_dump(id),
    upid INTEGER NOT NULL REFERENCES process(id),
    ts INTEGER NOT NULL, -- when its mappings were read
    component TEXT NOT NULL,
    private_bytes INTEGER NOT NULL,
    shared_bytes INTEGER NOT NULL,
    proportional_bytes INTEGER NOT NULL,
    swapped_bytes INTEGER NOT NULL,
    PRIMARY KEY (dump, upid, component)
) WITHOUT ROWID;

CREATE TABLE memlog_stack(
    dump INTEGER NOT NULL REFERENCES memlog_dump(id),
    upid INTEGER NOT NULL REFERENCES process(id),
    callsite_id INTEGER NOT NULL REFERENCES stack_profile_callsite(id),
    thread TEXT NOT NULL,
    live_bytes INTEGER NOT NULL,
    live_blocks INTEGER NOT NULL,
    peak_bytes INTEGER NOT NULL, -- at its process's peak
    peak_blocks INTEGER NOT NULL,
    total_bytes INTEGER NOT NULL,
    total_blocks INTEGER NOT NULL,
    tree_peak_bytes INTEGER NOT NULL, -- at the peak of all processes together
    tree_peak_blocks INTEGER NOT NULL,
    temporary_blocks INTEGER NOT NULL, -- freed by the thread that took them, with nothing in between
    PRIMARY KEY (dump, upid, callsite_id)
) WITHOUT ROWID;

-- Each function's own and cumulative bytes of each dump, live and ever allocated; recursion counts
-- once.
CREATE VIEW memlog_function AS
WITH RECURSIVE path(leaf, site) AS (
    SELECT DISTINCT callsite_id, callsite_id FROM memlog_stack
    UNION
    SELECT path.leaf, c.parent_id FROM path JOIN stack_profile_callsite c ON c.id = path.site
    WHERE c.parent_id IS NOT NULL
),
stack(dump, leaf, live_bytes, total_bytes) AS (
    SELECT dump, callsite_id, sum(live_bytes), sum(total_bytes) FROM memlog_stack
    GROUP BY dump, callsite_id
),
on_path(leaf, name, own) AS (
    SELECT path.leaf, coalesce(f.deobfuscated_name, f.name), max(path.leaf = path.site)
    FROM path
    JOIN stack_profile_callsite c ON c.id = path.site
    JOIN stack_profile_frame f ON f.id = c.frame_id
    GROUP BY path.leaf, coalesce(f.deobfuscated_name, f.name)
)
SELECT
    name,
    sum(own * live_bytes) AS self_live_bytes,
    sum(live_bytes) AS cumulative_live_bytes,
    sum(own * total_bytes) AS self_total_bytes,
    sum(total_bytes) AS cumulative_total_bytes,
    dump
FROM on_path JOIN stack USING (leaf)
GROUP BY dump, name;
