-- Take in the processes, mappings and frames of the database `one`.

DELETE FROM process_map;
DELETE FROM process_in;
INSERT INTO process_in
SELECT id, memlog_id, pid, row_number() OVER (PARTITION BY memlog_id, pid ORDER BY id)
FROM one.process;
INSERT OR IGNORE INTO known_process(memlog_id, pid, nth)
SELECT memlog_id, pid, nth FROM process_in ORDER BY one;
INSERT INTO process_map
SELECT i.one, k.id FROM process_in i JOIN known_process k USING (memlog_id, pid, nth);
INSERT INTO main.process
SELECT m.main, m.main, p.pid, p.name, p.start_ts, p.end_ts, parent.main, p.cmdline, p.memlog_id
FROM one.process p
JOIN process_map m ON m.one = p.id
LEFT JOIN process_map parent ON parent.one = p.parent_upid
WHERE true
ON CONFLICT (id) DO UPDATE SET
    name = excluded.name,
    start_ts = excluded.start_ts,
    end_ts = excluded.end_ts,
    parent_upid = excluded.parent_upid,
    cmdline = excluded.cmdline;

DELETE FROM mapping_map;
DELETE FROM mapping_in;
INSERT INTO mapping_in
SELECT
    id, build_id, exact_offset, start_offset, "start", "end", load_bias, name,
    row_number() OVER (
        PARTITION BY name, build_id, "start", "end", exact_offset, start_offset, load_bias
        ORDER BY id
    )
FROM one.stack_profile_mapping;
-- What is in no file has 0 in every dump.
INSERT OR IGNORE INTO known_mapping SELECT * FROM mapping_in WHERE one = 0;
INSERT OR IGNORE INTO known_mapping(
    build_id, exact_offset, start_offset, "start", "end", load_bias, name, nth
)
SELECT build_id, exact_offset, start_offset, "start", "end", load_bias, name, nth
FROM mapping_in ORDER BY one;
INSERT INTO mapping_map
SELECT i.one, k.id FROM mapping_in i
JOIN known_mapping k
USING (name, build_id, "start", "end", exact_offset, start_offset, load_bias, nth);
INSERT OR IGNORE INTO main.stack_profile_mapping
SELECT m.main, i.build_id, i.exact_offset, i.start_offset, i."start", i."end", i.load_bias, i.name
FROM mapping_in i JOIN mapping_map m USING (one);

DELETE FROM frame_map;
DELETE FROM frame_in;
INSERT INTO frame_in
SELECT
    f.id, m.main, f.rel_pc, f.name, coalesce(f.deobfuscated_name, ''),
    row_number() OVER (
        PARTITION BY m.main, f.rel_pc, f.name, f.deobfuscated_name ORDER BY f.id
    )
FROM one.stack_profile_frame f JOIN mapping_map m ON m.one = f.mapping;
INSERT OR IGNORE INTO known_frame(mapping, rel_pc, name, deobfuscated_name, nth)
SELECT mapping, rel_pc, name, deobfuscated_name, nth FROM frame_in ORDER BY one;
INSERT INTO frame_map
SELECT i.one, k.id FROM frame_in i
JOIN known_frame k USING (mapping, rel_pc, name, deobfuscated_name, nth);
INSERT INTO main.stack_profile_symbol(symbol_set_id, name, source_file, line_number, inlined)
SELECT m.main, s.name, s.source_file, s.line_number, s.inlined
FROM one.stack_profile_symbol s
JOIN one.stack_profile_frame f USING (symbol_set_id)
JOIN frame_map m ON m.one = f.id
WHERE m.main NOT IN (SELECT id FROM main.stack_profile_frame)
ORDER BY s.id;
INSERT OR IGNORE INTO main.stack_profile_frame
SELECT
    m.main, f.name, i.mapping, f.rel_pc, iif(f.symbol_set_id IS NULL, NULL, m.main),
    f.deobfuscated_name
FROM one.stack_profile_frame f
JOIN frame_map m ON m.one = f.id
JOIN frame_in i ON i.one = f.id;

DELETE FROM site_map;
DELETE FROM site_in;
CREATE INDEX one.callsite_depth ON stack_profile_callsite(depth);
