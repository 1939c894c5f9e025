-- The embedded store. Ids of frames and stacks are keyed hashes (host/collect/ids.h); all other words are numbers of `words`.
-- Times: ms since 1970. Sizes: bytes. A week is the number of its Monday, days since 1970.
CREATE TABLE IF NOT EXISTS words (id INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE);

-- `told`: what the report's form says, bits of kTold (mojom_like_idl/contracts/fleet_report.mojom): 1 live, 2 peak, 4 total, 8 complete
-- and covered, 16 cost. Of the rest a 0 says nothing.
CREATE TABLE IF NOT EXISTS dumps (
  id INTEGER PRIMARY KEY, team INTEGER NOT NULL, guid TEXT NOT NULL, program INTEGER NOT NULL, build INTEGER NOT NULL,
  version INTEGER NOT NULL, host INTEGER NOT NULL, time_ms INTEGER NOT NULL, reason INTEGER NOT NULL, cause INTEGER NOT NULL,
  control INTEGER NOT NULL, weight INTEGER NOT NULL, complete INTEGER NOT NULL, covered INTEGER NOT NULL,
  sampling_bytes INTEGER NOT NULL, processes INTEGER NOT NULL, private_bytes INTEGER NOT NULL, left_bytes INTEGER NOT NULL,
  live INTEGER NOT NULL, peak INTEGER NOT NULL, total INTEGER NOT NULL, week INTEGER NOT NULL, told INTEGER NOT NULL DEFAULT 15,
  promised_ppm INTEGER NOT NULL DEFAULT 0, cost_ppm INTEGER NOT NULL DEFAULT 0,
  UNIQUE (team, guid));
CREATE INDEX IF NOT EXISTS dumps_by_program ON dumps (team, program, build, time_ms);
CREATE INDEX IF NOT EXISTS dumps_by_time ON dumps (team, time_ms);

CREATE TABLE IF NOT EXISTS frames (
  id INTEGER PRIMARY KEY, function INTEGER NOT NULL, module INTEGER NOT NULL, build_id INTEGER NOT NULL, place INTEGER NOT NULL);

-- A stack is its innermost frame and its callers' stack; `names` is equal for equal functions, whatever build they are of.
CREATE TABLE IF NOT EXISTS stacks (
  id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, frame INTEGER NOT NULL, names INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS stacks_by_names ON stacks (names);
CREATE INDEX IF NOT EXISTS stacks_by_parent ON stacks (parent);
CREATE INDEX IF NOT EXISTS stacks_by_frame ON stacks (frame);

CREATE TABLE IF NOT EXISTS samples (
  dump INTEGER NOT NULL, stack INTEGER NOT NULL, role INTEGER NOT NULL, process INTEGER NOT NULL, heap INTEGER NOT NULL,
  type INTEGER NOT NULL, live INTEGER NOT NULL, live_n INTEGER NOT NULL, peak INTEGER NOT NULL, peak_n INTEGER NOT NULL,
  total INTEGER NOT NULL, total_n INTEGER NOT NULL,
  PRIMARY KEY (dump, stack, role, process, heap, type)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS samples_by_stack ON samples (stack, dump);

-- Sums of a week: what most questions are answered from. `share` is the sum of the dumps' shares of their live bytes.
CREATE TABLE IF NOT EXISTS sums (
  team INTEGER NOT NULL, program INTEGER NOT NULL, build INTEGER NOT NULL, week INTEGER NOT NULL, control INTEGER NOT NULL,
  stack INTEGER NOT NULL, n INTEGER NOT NULL, live REAL NOT NULL, live_n REAL NOT NULL, peak REAL NOT NULL,
  total REAL NOT NULL, share REAL NOT NULL, share_squares REAL NOT NULL, most INTEGER NOT NULL,
  PRIMARY KEY (team, program, build, week, control, stack)) WITHOUT ROWID;

-- `peak_n` and `total_n` are of the dumps that say such a figure.
CREATE TABLE IF NOT EXISTS weeks (
  team INTEGER NOT NULL, program INTEGER NOT NULL, build INTEGER NOT NULL, week INTEGER NOT NULL, control INTEGER NOT NULL,
  n INTEGER NOT NULL, live REAL NOT NULL, live_squares REAL NOT NULL, peak REAL NOT NULL, total REAL NOT NULL,
  peak_n INTEGER NOT NULL DEFAULT 0, total_n INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (team, program, build, week, control)) WITHOUT ROWID;

-- Stacks of removed dumps, which may be nobody's; and whether words may be (host/collect/sqlite/sweep.c), and when they were swept.
CREATE TABLE IF NOT EXISTS loose (stack INTEGER PRIMARY KEY);
CREATE TABLE IF NOT EXISTS swept (state INTEGER NOT NULL, at_s INTEGER NOT NULL);
