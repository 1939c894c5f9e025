-- What is asked instead of the statements of the same names in questions.sql when stacks of the team got names later: samples and sums keep
-- the names that they came with. :calls are the ids of those stacks with what they are called now, as k and later. Rows are added up by stack
-- first, where they are, and few are left to be called otherwise.

-- name: top
SELECT if(later = 0, w, later) AS called, max(k), sum(l), sum(p), sum(t), sum(c), max(m), sum(b)
FROM (
  SELECT stack AS k, any(names) AS w, sum(live) AS l, sum(peak) AS p, sum(total) AS t, sum(n) AS c, max(most) AS m, sum(live_n) AS b
  FROM sums WHERE team = :team :and_program :and_build AND kept IN (:rolled) AND week BETWEEN :from AND :until
    AND control >= :control AND stack != 0
  GROUP BY k
  UNION ALL
  SELECT stack AS k, any(names) AS w, sum(toFloat64(live)) AS l, sum(toFloat64(peak)) AS p, sum(toFloat64(total)) AS t, sum(first) AS c,
    max(stack_live) AS m, sum(toFloat64(live_n)) AS b
  FROM samples WHERE team = :team :and_program :and_build AND kept NOT IN (:rolled) AND kept >= :from_day
    AND week BETWEEN :from AND :until AND control >= :control AND stack != 0
  GROUP BY k) AS two
ANY LEFT JOIN (:calls) AS three USING k
GROUP BY called ORDER BY multiIf(:metric = 1, sum(p), :metric = 2, sum(t), sum(l)) DESC, called LIMIT :limit

-- name: hosts_of_names
SELECT if(later = 0, w, later) AS called, uniqExactMerge(h)
FROM (
  SELECT stack AS k, any(names) AS w, uniqExactState(cityHash64(host)) AS h FROM samples PREWHERE :of_names
  WHERE team = :team :and_program :and_build :and_span
  GROUP BY k) AS one
ANY LEFT JOIN (:calls) AS three USING k
GROUP BY called

-- name: sums
SELECT k, l, p, t, if(later = 0, n, later)
FROM (
  SELECT k, sum(l) AS l, sum(p) AS p, sum(t) AS t, any(n) AS n
  FROM (
    SELECT stack AS k, sum(live) AS l, sum(peak) AS p, sum(total) AS t, any(names) AS n
    FROM sums WHERE team = :team :and_program :and_build AND kept IN (:rolled) AND week BETWEEN :from AND :until
      AND control >= :control
    GROUP BY k
    UNION ALL
    SELECT stack AS k, sum(toFloat64(live)) AS l, sum(toFloat64(peak)) AS p, sum(toFloat64(total)) AS t, any(names) AS n
    FROM samples WHERE team = :team :and_program :and_build AND kept NOT IN (:rolled) AND kept >= :from_day
      AND week BETWEEN :from AND :until AND control >= :control
    GROUP BY k) AS two
  GROUP BY k) AS one
ANY LEFT JOIN (:calls) AS three USING k
ORDER BY k

-- name: shares
-- `k` is a stack that got names later, of :renamed, or the names of all others: they are hashes, and none is the other's.
SELECT called, max(s), sum(if(b = :build, part / d, 0)), sum(if(b = :build, part * part / d / d, 0)),
  sum(if(b = :other, part / d, 0)), sum(if(b = :other, part * part / d / d, 0))
FROM (
  SELECT b, u, if(later = 0, k, later) AS called, max(a) AS s, sum(e) AS part
  FROM (
    SELECT build AS b, :unit AS u, if(stack IN (:renamed), stack, names) AS k, max(stack) AS a, sum(toFloat64(:figure) / :whole) AS e
    FROM samples :join_whole
    WHERE team = :team AND program = :program AND build IN (:build, :other) :and_host AND control = 1 AND :whole > 0
      AND stack != 0 AND time_ms BETWEEN :from_ms AND :until_ms AND kept >= :from_day
    GROUP BY b, u, k) AS zero
  ANY LEFT JOIN (:calls) AS four USING k
  GROUP BY b, u, called) AS one
ANY LEFT JOIN (
  SELECT build AS b, :unit AS u, toFloat64(count()) AS d FROM dumps
  WHERE team = :team AND program = :program AND build IN (:build, :other) :and_host AND control = 1 AND :figure > 0
    AND time_ms BETWEEN :from_ms AND :until_ms AND kept >= :from_day
  GROUP BY b, u) AS two USING b, u
GROUP BY called ORDER BY called
