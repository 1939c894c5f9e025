-- Take in the rows of the database `one`, whose call sites are known by now. memlog_dump of `main`
-- has the dumps before: its next id is the dump's.

INSERT INTO main.memlog_dump
SELECT
    (SELECT count(*) + 1 FROM main.memlog_dump), ts, time, reason, "trigger", program, complete,
    live_bytes, live_blocks, peak_bytes, peak_blocks, total_bytes, total_blocks, covered, uncovered
FROM one.memlog_dump;

DELETE FROM figures_before;
INSERT INTO figures_before SELECT * FROM figures;
DELETE FROM figures;
INSERT INTO figures
SELECT p.main, a.heap_name, s.main, a.is_free, max(a.ts), sum(a.count), sum(a.size)
FROM one.heap_profile_allocation a
JOIN process_map p ON p.one = a.upid
JOIN site_map s ON s.one = a.callsite_id
GROUP BY 1, 2, 3, 4;
INSERT INTO main.heap_profile_allocation(
    ts, upid, heap_name, callsite_id, count, size, is_free, dump
)
SELECT
    f.ts, f.upid, f.heap_name, f.callsite_id,
    f.count - coalesce(b.count, 0), f.size - coalesce(b.size, 0), f.is_free,
    (SELECT max(id) FROM main.memlog_dump)
FROM figures f
LEFT JOIN figures_before b USING (upid, heap_name, callsite_id, is_free)
WHERE b.upid IS NULL OR f.count <> b.count OR f.size <> b.size
UNION ALL
-- What the dump before had and this one has not.
SELECT
    d.ts, b.upid, b.heap_name, b.callsite_id, -b.count, -b.size, b.is_free,
    (SELECT max(id) FROM main.memlog_dump)
FROM figures_before b JOIN one.memlog_dump d
LEFT JOIN figures f USING (upid, heap_name, callsite_id, is_free)
WHERE f.upid IS NULL AND (b.count <> 0 OR b.size <> 0);

UPDATE one.memlog_process SET dump = (SELECT max(id) FROM main.memlog_dump);
INSERT INTO main.memlog_process
SELECT
    o.dump, m.main, o.ts, role, state, complete, sampling_bytes, footprint_bytes, resident_bytes,
    inherited_bytes, inherited_blocks, live_bytes, live_blocks, peak_bytes, peak_blocks,
    total_bytes, total_blocks, processes
FROM one.memlog_process o JOIN process_map m ON m.one = o.upid;
INSERT INTO main.memlog_unrecorded
SELECT
    (SELECT max(id) FROM main.memlog_dump), m.main, role, state, reason, idle, private_bytes,
    resident_bytes, processes
FROM one.memlog_unrecorded o JOIN process_map m ON m.one = o.upid;
INSERT INTO main.memlog_component
SELECT
    (SELECT max(id) FROM main.memlog_dump), m.main, ts, component, private_bytes, shared_bytes,
    proportional_bytes, swapped_bytes
FROM one.memlog_component o JOIN process_map m ON m.one = o.upid;
INSERT INTO main.memlog_stack
SELECT
    (SELECT max(id) FROM main.memlog_dump), m.main, s.main, thread, live_bytes, live_blocks,
    peak_bytes, peak_blocks, total_bytes, total_blocks, tree_peak_bytes, tree_peak_blocks,
    temporary_blocks
FROM one.memlog_stack o
JOIN process_map m ON m.one = o.upid
JOIN site_map s ON s.one = o.callsite_id;

INSERT INTO main.profiler_smaps
SELECT
    NULL, m.main, ts, path, path_trimmed, is_deleted, size_kb, private_dirty_kb, swap_kb,
    start_address, protection_flags, private_clean_resident_kb, shared_dirty_resident_kb,
    shared_clean_resident_kb, proportional_resident_kb, rss_kb, anonymous_kb,
    (SELECT max(id) FROM main.memlog_dump)
FROM one.profiler_smaps o JOIN process_map m ON m.one = o.upid
WHERE (m.main, o.ts) NOT IN (
    SELECT upid, ts FROM main.profiler_smaps
    WHERE dump < (SELECT max(id) FROM main.memlog_dump)
)
ORDER BY o.id;

-- The main thread is one; others are told apart by their names alone.
INSERT INTO main.thread(tid, name, upid, is_main_thread, start_ts)
SELECT t.tid, t.name, m.main, t.is_main_thread, t.start_ts
FROM one.thread t JOIN process_map m ON m.one = t.upid
WHERE NOT EXISTS (
    SELECT 1 FROM main.thread o
    WHERE o.upid = m.main AND o.is_main_thread = t.is_main_thread
    AND (t.is_main_thread OR o.name = t.name)
)
ORDER BY t.id;
UPDATE main.thread SET utid = id;

-- Counts since the start, and the whole past: the last dump that has the process says all.
DELETE FROM main.stats WHERE idx IN (SELECT idx FROM one.stats);
INSERT INTO main.stats SELECT * FROM one.stats ORDER BY rowid;
INSERT INTO main.process_counter_track(name, upid, unit)
SELECT o.name, m.main, o.unit
FROM one.process_counter_track o JOIN process_map m ON m.one = o.upid
WHERE (o.name, m.main) NOT IN (SELECT name, upid FROM main.process_counter_track)
ORDER BY o.id;
CREATE TEMP TABLE track_map AS
SELECT o.id AS one, t.id AS main
FROM one.process_counter_track o
JOIN process_map m ON m.one = o.upid
JOIN main.process_counter_track t ON t.upid = m.main AND t.name = o.name;
DELETE FROM main.counter WHERE track_id IN (SELECT main FROM track_map);
INSERT INTO main.counter(ts, track_id, value)
SELECT o.ts, m.main, o.value
FROM one.counter o JOIN track_map m ON m.one = o.track_id ORDER BY o.id;
DROP TABLE track_map;
