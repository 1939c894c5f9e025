-- What is made at each node when it is asked first. Statements end with an empty line. :db is the database, :reading_T what one sees all
-- nodes' rows of T_local by: a table of engine Distributed, or, with one node, of Merge.
-- Ids of frames and stacks are keyed hashes (host/collect/ids.h). Times: ms since 1970. Sizes: bytes. `week` is the number of the Monday of
-- the report's time, days since 1970; `kept` is the Monday of its arrival, which says when it is dropped. All that 18.16 does not
-- know, or newer ones know no more, is left out: LowCardinality, CODEC, TTL.

CREATE DATABASE IF NOT EXISTS :db

CREATE TABLE IF NOT EXISTS :db.nodes_local (url String, owner UInt64) ENGINE = ReplacingMergeTree ORDER BY url

CREATE TABLE IF NOT EXISTS :db.nodes AS :db.nodes_local ENGINE = :reading_nodes

-- Whole at every node. The same row may come again.
CREATE TABLE IF NOT EXISTS :db.frames (team String, id Int64, function String, module String, build_id String, place UInt64)
ENGINE = ReplacingMergeTree ORDER BY (team, id)

-- A stack with samples: itself and its callers, and the frame of each, the outermost first. Whole at every node.
CREATE TABLE IF NOT EXISTS :db.stacks (team String, id Int64, names Int64, stacks Array(Int64), frames Array(Int64))
ENGINE = ReplacingMergeTree ORDER BY (team, id)

-- Names that came later, whole at every node: functions of frames that came without, and what stacks with samples are called by them. The rows
-- of a turn of `memlog collect symbolize` are seen when `turns` has it (host/collect/clickhouse/names.c).
CREATE TABLE IF NOT EXISTS :db.given (team String, id Int64, function String, turn Int64)
ENGINE = ReplacingMergeTree ORDER BY (team, id, turn)

CREATE TABLE IF NOT EXISTS :db.renamed (team String, id Int64, names Int64, turn Int64)
ENGINE = ReplacingMergeTree ORDER BY (team, id, turn)

CREATE TABLE IF NOT EXISTS :db.turns (team String, turn Int64) ENGINE = ReplacingMergeTree ORDER BY (team, turn)

-- `batch` is the number of the insert that it came by. `first` is 1 in one row of those that a stack has in a report, `stack_live`
-- there what the stack has in all of them.
CREATE TABLE IF NOT EXISTS :db.samples_local (kept Date, week Int32, team String, program String, build String, host String,
  guid String, time_ms UInt64, control UInt8, batch UInt64, stack Int64, names Int64, role String, process String, heap String,
  type String, first UInt8, stack_live UInt64, dump_live UInt64, live UInt64, live_n UInt64, peak UInt64, peak_n UInt64,
  total UInt64, total_n UInt64)
ENGINE = MergeTree PARTITION BY kept ORDER BY (team, program, build, stack, time_ms)

CREATE TABLE IF NOT EXISTS :db.samples AS :db.samples_local ENGINE = :reading_samples

-- `told`: what the report's form says, bits of kTold (mojom_like_idl/contracts/fleet_report.mojom): 1 live, 2 peak, 4 total, 8 complete
-- and covered, 16 cost, which is in ppm like what was promised. Of the rest a 0 says nothing.
CREATE TABLE IF NOT EXISTS :db.dumps_local (kept Date, week Int32, team String, program String, build String, version String,
  host String, guid String, time_ms UInt64, reason String, cause String, control UInt8, weight UInt32, complete UInt8, covered UInt8,
  sampling UInt64, processes UInt64, private_bytes UInt64, left_bytes UInt64, live UInt64, peak UInt64, total UInt64, batch UInt64,
  told UInt8, promised UInt32, cost UInt32)
ENGINE = ReplacingMergeTree PARTITION BY kept ORDER BY (team, program, build, time_ms, guid)

CREATE TABLE IF NOT EXISTS :db.dumps AS :db.dumps_local ENGINE = :reading_dumps

-- Sums of the samples of past weeks; a partition is replaced as a whole by what was made in `sums_made`.
CREATE TABLE IF NOT EXISTS :db.sums_local (kept Date, week Int32, team String, program String, build String, control UInt8,
  stack Int64, names Int64, n UInt64, live Float64, live_n Float64, peak Float64, total Float64, most UInt64)
ENGINE = MergeTree PARTITION BY kept ORDER BY (team, program, build, week, stack)

CREATE TABLE IF NOT EXISTS :db.sums_made AS :db.sums_local
ENGINE = MergeTree PARTITION BY kept ORDER BY (team, program, build, week, stack)

CREATE TABLE IF NOT EXISTS :db.sums AS :db.sums_local ENGINE = :reading_sums
