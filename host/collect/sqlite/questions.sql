-- What is asked of the embedded store. Each statement stands behind "-- name: NAME". All have :team, the number of its word, and are
-- of that team alone. :program, :build, ... are numbers of words, 0: any. :from and :until are weeks for sums, ms for dumps.
-- A figure that nothing told is -1.

-- name: programs
SELECT p.word, count(*), count(DISTINCT d.build), count(DISTINCT d.host), total(d.control), max(d.time_ms),
  avg(d.live), max(CASE WHEN d.told & 2 THEN d.peak ELSE -1 END), total((d.told & 2) = 0)
FROM dumps d JOIN words p ON p.id = d.program
WHERE d.team = :team AND (:program = 0 OR d.program = :program) AND (:build = 0 OR d.build = :build) AND (:host = 0 OR d.host = :host)
  AND d.control >= :control AND d.time_ms BETWEEN :from_ms AND :until_ms
GROUP BY d.program ORDER BY count(*) DESC, p.word LIMIT :limit

-- name: builds
SELECT b.word, max(v.word), min(d.time_ms), max(d.time_ms), count(*), count(DISTINCT d.host), total(d.control),
  avg(CASE WHEN d.control THEN d.live END), avg(CASE WHEN d.control THEN 1.0 * d.live * d.live END), avg(d.live),
  max(CASE WHEN d.told & 2 THEN d.peak ELSE -1 END), total((d.told & 2) = 0),
  coalesce(avg(CASE WHEN d.told & 16 THEN d.cost_ppm END), -1), total((d.told & 16) != 0),
  total((d.told & 16) != 0 AND d.promised_ppm > 0 AND d.cost_ppm > d.promised_ppm)
FROM dumps d JOIN words b ON b.id = d.build JOIN words v ON v.id = d.version
WHERE d.team = :team AND d.program = :program AND (:build = 0 OR d.build = :build) AND (:host = 0 OR d.host = :host)
  AND d.control >= :control AND d.time_ms BETWEEN :from_ms AND :until_ms
GROUP BY d.build ORDER BY min(d.time_ms) DESC, b.word LIMIT :limit

-- name: dumps_of_sums
SELECT total(n), total(live), total(peak), total(total), total(n - peak_n), total(n - total_n) FROM weeks
WHERE team = :team AND (:program = 0 OR program = :program) AND (:build = 0 OR build = :build)
  AND week BETWEEN :from AND :until AND control >= :control

-- name: top
SELECT k.names, max(s.stack), total(s.live), total(s.peak), total(s.total), total(s.n), max(s.most), total(s.live_n)
FROM sums s JOIN stacks k ON k.id = s.stack
WHERE s.team = :team AND (:program = 0 OR s.program = :program) AND (:build = 0 OR s.build = :build)
  AND s.week BETWEEN :from AND :until AND s.control >= :control
GROUP BY k.names
ORDER BY CASE :metric WHEN 1 THEN total(s.peak) WHEN 2 THEN total(s.total) ELSE total(s.live) END DESC, k.names LIMIT :limit

-- name: hosts_of_names
SELECT count(DISTINCT d.host) FROM samples x JOIN dumps d ON d.id = x.dump
WHERE x.stack IN (SELECT id FROM stacks WHERE names = :names) AND d.team = :team
  AND (:program = 0 OR d.program = :program) AND (:build = 0 OR d.build = :build)
  AND d.week BETWEEN :from AND :until AND d.control >= :control

-- name: path
WITH RECURSIVE up (id, parent, frame, depth) AS (
  SELECT id, parent, frame, 0 FROM stacks WHERE id = :stack
  UNION ALL SELECT s.id, s.parent, s.frame, up.depth + 1 FROM stacks s JOIN up ON s.id = up.parent)
SELECT f.word, m.word, i.word, r.place FROM up JOIN frames r ON r.id = up.frame
JOIN words f ON f.id = r.function JOIN words m ON m.id = r.module JOIN words i ON i.id = r.build_id ORDER BY up.depth DESC

-- name: sums
SELECT s.stack, total(s.live), total(s.peak), total(s.total), k.names FROM sums s JOIN stacks k ON k.id = s.stack
WHERE s.team = :team AND (:program = 0 OR s.program = :program) AND (:build = 0 OR s.build = :build)
  AND s.week BETWEEN :from AND :until AND s.control >= :control
GROUP BY s.stack ORDER BY s.stack

-- name: node
SELECT s.parent, f.word, m.word, r.place FROM stacks s JOIN frames r ON r.id = s.frame
JOIN words f ON f.id = r.function JOIN words m ON m.id = r.module WHERE s.id = :stack

-- name: control_dumps
-- `v` is the figure that shares are of.
SELECT total(v > 0), count(DISTINCT CASE WHEN v > 0 THEN host END), total(is_untold)
FROM (
  SELECT host, CASE :metric WHEN 1 THEN peak WHEN 2 THEN total ELSE live END v,
    CASE :metric WHEN 1 THEN (told & 2) = 0 WHEN 2 THEN (told & 4) = 0 ELSE 0 END is_untold
  FROM dumps WHERE team = :team AND program = :program AND build = :build AND (:host = 0 OR host = :host) AND control = 1
    AND time_ms BETWEEN :from_ms AND :until_ms)

-- name: shares
-- A unit is a host with the mean of its dumps (:by_host), or a dump.
WITH chosen AS (
  SELECT id, build, CASE :by_host WHEN 1 THEN host ELSE id END unit, CASE :metric WHEN 1 THEN peak WHEN 2 THEN total ELSE live END v
  FROM dumps WHERE team = :team AND program = :program AND build IN (:build, :other) AND (:host = 0 OR host = :host) AND control = 1
    AND time_ms BETWEEN :from_ms AND :until_ms),
units AS (SELECT build, unit, count(*) dumps FROM chosen WHERE v > 0 GROUP BY build, unit)
SELECT names, max(stack), total(CASE WHEN build = :build THEN share END), total(CASE WHEN build = :build THEN share * share END),
  total(CASE WHEN build = :other THEN share END), total(CASE WHEN build = :other THEN share * share END)
FROM (
  SELECT d.build, k.names, max(k.id) stack,
    total(1.0 * CASE :metric WHEN 1 THEN x.peak WHEN 2 THEN x.total ELSE x.live END / d.v) / u.dumps share
  FROM chosen d JOIN units u ON u.build = d.build AND u.unit = d.unit JOIN samples x ON x.dump = d.id JOIN stacks k ON k.id = x.stack
  WHERE d.v > 0
  GROUP BY d.build, u.unit, k.names)
GROUP BY names

-- name: median_of_control
SELECT live FROM dumps WHERE team = :team AND program = :program AND (:build = 0 OR build = :build) AND (:host = 0 OR host = :host)
  AND control = 1 AND time_ms BETWEEN :from_ms AND :until_ms
ORDER BY live LIMIT 1 OFFSET (SELECT count(*) / 2 FROM dumps
  WHERE team = :team AND program = :program AND (:build = 0 OR build = :build) AND (:host = 0 OR host = :host)
    AND control = 1 AND time_ms BETWEEN :from_ms AND :until_ms)

-- name: hosts
SELECT h.word, count(*), max(d.live), avg(d.live), max(d.time_ms), max(b.word)
FROM dumps d JOIN words h ON h.id = d.host JOIN words b ON b.id = d.build
WHERE d.team = :team AND d.program = :program AND (:build = 0 OR d.build = :build) AND (:host = 0 OR d.host = :host)
  AND d.control >= :control AND d.time_ms BETWEEN :from_ms AND :until_ms
GROUP BY d.host ORDER BY max(d.live) DESC, h.word LIMIT :limit

-- name: hosts_of_stack
SELECT h.word, count(*), max(x.live), avg(x.live), max(d.time_ms), max(b.word)
FROM (SELECT dump, total(live) live FROM samples WHERE stack IN (SELECT id FROM stacks WHERE names = :names) GROUP BY dump) x
JOIN dumps d ON d.id = x.dump JOIN words h ON h.id = d.host JOIN words b ON b.id = d.build
WHERE d.team = :team AND (:program = 0 OR d.program = :program) AND (:build = 0 OR d.build = :build)
  AND (:host = 0 OR d.host = :host) AND d.control >= :control AND d.time_ms BETWEEN :from_ms AND :until_ms
GROUP BY d.host ORDER BY max(x.live) DESC, h.word LIMIT :limit

-- name: reports
SELECT d.guid, d.time_ms, p.word, b.word, v.word, h.word, c.word, r.word, d.control,
  CASE WHEN d.told & 8 THEN d.complete ELSE -1 END, CASE WHEN d.told & 8 THEN d.covered ELSE -1 END, d.sampling_bytes, d.processes, d.live,
  CASE WHEN d.told & 2 THEN d.peak ELSE -1 END, CASE WHEN d.told & 4 THEN d.total ELSE -1 END, d.private_bytes, d.left_bytes,
  CASE WHEN d.promised_ppm > 0 THEN d.promised_ppm ELSE -1 END, CASE WHEN d.told & 16 THEN d.cost_ppm ELSE -1 END, d.told
FROM dumps d JOIN words p ON p.id = d.program JOIN words b ON b.id = d.build JOIN words v ON v.id = d.version
JOIN words h ON h.id = d.host JOIN words c ON c.id = d.cause JOIN words r ON r.id = d.reason
WHERE d.team = :team AND (:program = 0 OR d.program = :program) AND (:build = 0 OR d.build = :build)
  AND (:host = 0 OR d.host = :host) AND (:guid = '' OR d.guid = :guid) AND d.control >= :control
  AND (:names = 0 OR d.id IN (SELECT dump FROM samples WHERE stack IN (SELECT id FROM stacks WHERE names = :names)))
  AND d.time_ms BETWEEN :from_ms AND :until_ms
ORDER BY d.time_ms DESC, d.guid LIMIT :limit

-- name: rows
SELECT x.stack, o.word, q.word, e.word, t.word, x.live, x.live_n, x.peak, x.peak_n, x.total, x.total_n
FROM samples x JOIN dumps d ON d.id = x.dump JOIN words o ON o.id = x.role JOIN words q ON q.id = x.process
JOIN words e ON e.id = x.heap JOIN words t ON t.id = x.type
WHERE d.team = :team AND d.guid = :guid ORDER BY x.live DESC, x.peak DESC, x.stack, o.word, q.word, e.word, t.word LIMIT :limit
