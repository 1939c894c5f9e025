-- What is asked of ClickHouse. Each statement stands behind "-- name: NAME" and gives the columns of the one of that name in
-- host/collect/sqlite/questions.sql. :team, :guid, ... are texts. :and_program is "AND program = ..." where the question says one, else
-- nothing; likewise the other :and_. :and_span is of weeks and control. :unit is what shares are of: "host" or "guid". :figure is the column
-- of the metric. :rolled are the weeks whose sums are made; samples of the others are read themselves. :of_names are samples of a stack of
-- those names; what else is asked of a team whose stacks got names later stands in renamed.sql.
-- PREWHERE: names are in no key, so what is read first of all rows is as little as can be. Hosts count by 64 bits of a hash: sets of texts take
-- up to twice as long.
-- No alias is called as a column: 18.16 takes one for the other. ANY LEFT JOIN alone: ANY INNER JOIN means another thing in newer ones.
-- A figure that nothing told is -1.

-- name: programs
SELECT program, count(), uniqExact(build), uniqExact(host), sum(control), max(time_ms), avg(toFloat64(live)),
  max(if(bitAnd(told, 2) != 0, toInt64(peak), -1)), sum(bitAnd(told, 2) = 0)
FROM dumps WHERE team = :team :and_program :and_build :and_host AND control >= :control AND time_ms BETWEEN :from_ms AND :until_ms
  AND kept >= :from_day
GROUP BY program ORDER BY count() DESC, program LIMIT :limit

-- name: builds
SELECT build, max(version), min(time_ms), max(time_ms), count(), uniqExact(host), sum(control),
  avgIf(toFloat64(live), control = 1), avgIf(toFloat64(live) * toFloat64(live), control = 1), avg(toFloat64(live)),
  max(if(bitAnd(told, 2) != 0, toInt64(peak), -1)), sum(bitAnd(told, 2) = 0),
  if(sum(bitAnd(told, 16) != 0) = 0, -1, sum(if(bitAnd(told, 16) != 0, toFloat64(cost), 0)) / sum(bitAnd(told, 16) != 0)),
  sum(bitAnd(told, 16) != 0), sum(bitAnd(told, 16) != 0 AND promised > 0 AND cost > promised)
FROM dumps WHERE team = :team AND program = :program :and_build :and_host AND control >= :control
  AND time_ms BETWEEN :from_ms AND :until_ms AND kept >= :from_day
GROUP BY build ORDER BY min(time_ms) DESC, build LIMIT :limit

-- name: dumps_of_sums
SELECT count(), sum(toFloat64(live)), sum(toFloat64(peak)), sum(toFloat64(total)), sum(bitAnd(told, 2) = 0), sum(bitAnd(told, 4) = 0)
FROM dumps WHERE team = :team :and_program :and_build AND week BETWEEN :from AND :until AND kept >= :from_day AND control >= :control

-- name: top
SELECT names, max(s), sum(l), sum(p), sum(t), sum(c), max(m), sum(b)
FROM (
  SELECT names, max(stack) AS s, sum(live) AS l, sum(peak) AS p, sum(total) AS t, sum(n) AS c, max(most) AS m, sum(live_n) AS b
  FROM sums WHERE team = :team :and_program :and_build AND kept IN (:rolled) AND week BETWEEN :from AND :until
    AND control >= :control AND stack != 0
  GROUP BY names
  UNION ALL
  SELECT names, max(stack) AS s, sum(toFloat64(live)) AS l, sum(toFloat64(peak)) AS p, sum(toFloat64(total)) AS t, sum(first) AS c,
    max(stack_live) AS m, sum(toFloat64(live_n)) AS b
  FROM samples WHERE team = :team :and_program :and_build AND kept NOT IN (:rolled) AND kept >= :from_day
    AND week BETWEEN :from AND :until AND control >= :control AND stack != 0
  GROUP BY names) AS two
GROUP BY names ORDER BY multiIf(:metric = 1, sum(p), :metric = 2, sum(t), sum(l)) DESC, names LIMIT :limit

-- name: hosts_of_names
SELECT names, uniqExact(cityHash64(host)) FROM samples PREWHERE names IN (:ids)
WHERE team = :team :and_program :and_build :and_span
GROUP BY names

-- name: sums
SELECT stack, sum(l), sum(p), sum(t), any(k)
FROM (
  SELECT stack, sum(live) AS l, sum(peak) AS p, sum(total) AS t, any(names) AS k
  FROM sums WHERE team = :team :and_program :and_build AND kept IN (:rolled) AND week BETWEEN :from AND :until
    AND control >= :control
  GROUP BY stack
  UNION ALL
  SELECT stack, sum(toFloat64(live)) AS l, sum(toFloat64(peak)) AS p, sum(toFloat64(total)) AS t, any(names) AS k
  FROM samples WHERE team = :team :and_program :and_build AND kept NOT IN (:rolled) AND kept >= :from_day
    AND week BETWEEN :from AND :until AND control >= :control
  GROUP BY stack) AS two
GROUP BY stack ORDER BY stack

-- name: path
SELECT id, stacks, frames FROM stacks WHERE team = :team AND id IN (:ids)

-- name: node
SELECT id, function, module, build_id, place FROM frames WHERE team = :team AND id IN (:ids)

-- name: control_dumps
SELECT sum(:figure > 0), uniqExactIf(host, :figure > 0), sum(:is_untold)
FROM dumps WHERE team = :team AND program = :program AND build = :build :and_host AND control = 1
  AND time_ms BETWEEN :from_ms AND :until_ms AND kept >= :from_day

-- name: shares
SELECT names, max(s), sum(if(b = :build, part / d, 0)), sum(if(b = :build, part * part / d / d, 0)),
  sum(if(b = :other, part / d, 0)), sum(if(b = :other, part * part / d / d, 0))
FROM (
  SELECT build AS b, :unit AS u, names, max(stack) AS s, sum(toFloat64(:figure) / :whole) AS part FROM samples :join_whole
  WHERE team = :team AND program = :program AND build IN (:build, :other) :and_host AND control = 1 AND :whole > 0
    AND stack != 0 AND time_ms BETWEEN :from_ms AND :until_ms AND kept >= :from_day
  GROUP BY b, u, names) AS one
ANY LEFT JOIN (
  SELECT build AS b, :unit AS u, toFloat64(count()) AS d FROM dumps
  WHERE team = :team AND program = :program AND build IN (:build, :other) :and_host AND control = 1 AND :figure > 0
    AND time_ms BETWEEN :from_ms AND :until_ms AND kept >= :from_day
  GROUP BY b, u) AS two USING b, u
GROUP BY names ORDER BY names

-- name: median_of_control
SELECT quantileExact(0.5)(live) FROM dumps WHERE team = :team AND program = :program :and_build :and_host AND control = 1
  AND time_ms BETWEEN :from_ms AND :until_ms AND kept >= :from_day HAVING count() > 0

-- name: hosts
SELECT host, count(), max(live), avg(toFloat64(live)), max(time_ms), max(build)
FROM dumps WHERE team = :team AND program = :program :and_build :and_host AND control >= :control
  AND time_ms BETWEEN :from_ms AND :until_ms AND kept >= :from_day
GROUP BY host ORDER BY max(live) DESC, host LIMIT :limit

-- name: hosts_of_stack
SELECT host, count(), max(l), avg(l), max(t), max(b)
FROM (
  SELECT host, guid, sum(toFloat64(live)) AS l, max(time_ms) AS t, max(build) AS b FROM samples PREWHERE :of_names
  WHERE team = :team :and_program :and_build :and_host AND control >= :control
    AND time_ms BETWEEN :from_ms AND :until_ms AND kept >= :from_day
  GROUP BY host, guid) AS one
GROUP BY host ORDER BY max(l) DESC, host LIMIT :limit

-- name: reports
SELECT guid, time_ms, program, build, version, host, cause, reason, control, if(bitAnd(told, 8) != 0, toInt64(complete), -1),
  if(bitAnd(told, 8) != 0, toInt64(covered), -1), sampling, processes, live, if(bitAnd(told, 2) != 0, toInt64(peak), -1),
  if(bitAnd(told, 4) != 0, toInt64(total), -1), private_bytes, left_bytes,
  if(promised > 0, toInt64(promised), -1), if(bitAnd(told, 16) != 0, toInt64(cost), -1), told
FROM dumps WHERE team = :team :and_program :and_build :and_host :and_guid :and_stack AND control >= :control
  AND time_ms BETWEEN :from_ms AND :until_ms AND kept >= :from_day
ORDER BY time_ms DESC, guid LIMIT :limit

-- name: rows
SELECT stack, role, process, heap, type, sum(live), sum(live_n), sum(peak), sum(peak_n), sum(total), sum(total_n)
FROM samples WHERE team = :team AND guid = :guid
  AND (kept, program, build) IN (SELECT kept, program, build FROM :db.dumps_local WHERE team = :team AND guid = :guid)
GROUP BY stack, role, process, heap, type
ORDER BY sum(live) DESC, sum(peak) DESC, stack, role, process, heap, type LIMIT :limit
