-- What is known while the databases of dumps become one: under which id `main` has a place or a
-- process. `nth` keeps rows of one dump apart that say the same.

CREATE TEMP TABLE known_process(
    id INTEGER PRIMARY KEY, memlog_id, pid, nth, UNIQUE (memlog_id, pid, nth)
);
CREATE TEMP TABLE known_mapping(
    id INTEGER PRIMARY KEY,
    build_id, exact_offset, start_offset, "start", "end", load_bias, name, nth,
    UNIQUE (name, build_id, "start", "end", exact_offset, start_offset, load_bias, nth)
);
CREATE TEMP TABLE known_frame(
    id INTEGER PRIMARY KEY, mapping, rel_pc, name, deobfuscated_name, nth,
    UNIQUE (mapping, rel_pc, name, deobfuscated_name, nth)
);
CREATE TEMP TABLE known_site(
    id INTEGER PRIMARY KEY, parent, frame, nth, UNIQUE (parent, frame, nth)
);

-- From the ids of the dump that is taken in to those of `main`.
CREATE TEMP TABLE process_map(one INTEGER PRIMARY KEY, main INTEGER);
CREATE TEMP TABLE mapping_map(one INTEGER PRIMARY KEY, main INTEGER);
CREATE TEMP TABLE frame_map(one INTEGER PRIMARY KEY, main INTEGER);
CREATE TEMP TABLE site_map(one INTEGER PRIMARY KEY, main INTEGER);

CREATE TEMP TABLE process_in(one INTEGER PRIMARY KEY, memlog_id, pid, nth);
CREATE TEMP TABLE mapping_in(
    one INTEGER PRIMARY KEY,
    build_id, exact_offset, start_offset, "start", "end", load_bias, name, nth
);
CREATE TEMP TABLE frame_in(one INTEGER PRIMARY KEY, mapping, rel_pc, name, deobfuscated_name, nth);
CREATE TEMP TABLE site_in(one INTEGER PRIMARY KEY, parent, frame, nth);

-- The figures of stacks as of a dump, and of the one before.
CREATE TEMP TABLE figures(
    upid, heap_name, callsite_id, is_free, ts, count, size,
    PRIMARY KEY (upid, heap_name, callsite_id, is_free)
) WITHOUT ROWID;
CREATE TEMP TABLE figures_before(
    upid, heap_name, callsite_id, is_free, ts, count, size,
    PRIMARY KEY (upid, heap_name, callsite_id, is_free)
) WITHOUT ROWID;
