-- What the store asks and tells a database. ? stands for each value, {now} for its clock in seconds since 1970,
-- {bytes} for its type of bytes, {update} and {share} for the lock on the rows that a query finds. A statement that
-- changes rows begins with its verb: SQLite's driver counts the rows of no other.
-- A name with a dialect behind it is for that one alone.

-- name: lease
SELECT journal, epoch, holder, {now} - beat_at FROM journals WHERE run = ?{update}

-- name: run_exists
SELECT journal FROM journals WHERE run = ?{share}

-- name: begin
INSERT INTO journals (run, run_id, path, stem, width, claim, epoch, holder, beat_at)
VALUES (?, ?, ?, ?, ?, '', 1, ?, {now}) ON CONFLICT (run) DO NOTHING RETURNING journal

-- name: returned
DELETE FROM charges_kept WHERE run_id = ?

-- name: take
UPDATE journals SET epoch = ?, holder = ?, beat_at = {now} WHERE journal = ?

-- name: mine
SELECT epoch FROM journals WHERE journal = ?{share}

-- name: claim
UPDATE journals SET claim = ? WHERE journal = ?

-- name: renew
UPDATE journals SET beat_at = {now} WHERE journal = ? AND epoch = ?

-- name: release
UPDATE journals SET holder = '' WHERE journal = ? AND epoch = ?

-- name: append (sqlite)
INSERT INTO records (journal, seq, line, kind) SELECT journal, ?, ?, ? FROM journals WHERE journal = ? AND epoch = ?

-- name: append (postgresql)
WITH mine AS (SELECT journal FROM journals WHERE journal = ? AND epoch = ? FOR SHARE)
INSERT INTO records (journal, seq, line, kind)
SELECT mine.journal, each.seq, each.line, each.kind
FROM mine, unnest(?::BIGINT[], ?::BYTEA[], ?::TEXT[]) AS each (seq, line, kind)

-- name: append_loose (postgresql)
WITH mine AS (
  SELECT journal FROM journals WHERE journal = ? AND epoch = ?
  AND set_config('synchronous_commit', 'off', true) IS NOT NULL FOR SHARE
)
INSERT INTO records (journal, seq, line, kind)
SELECT mine.journal, each.seq, each.line, each.kind
FROM mine, unnest(?::BIGINT[], ?::BYTEA[], ?::TEXT[]) AS each (seq, line, kind)

-- name: enter
INSERT INTO records (journal, seq, line, kind) VALUES (?, ?, ?, ?)

-- name: between
SELECT CAST(line AS {bytes}) FROM records WHERE journal = ? AND seq BETWEEN ? AND ? ORDER BY seq

-- name: clear
DELETE FROM records WHERE journal = ?

-- name: end
SELECT COALESCE(MAX(seq), 0), COALESCE(SUM(LENGTH(line)), 0) FROM records WHERE journal = ?

-- name: head
INSERT INTO objects (key, etag, data)
SELECT ?, ?, CAST(? AS {bytes}) FROM journals WHERE journal = ? AND epoch = ?{share}
ON CONFLICT (key) DO UPDATE SET etag = excluded.etag, data = excluded.data

-- name: put
INSERT INTO objects (key, etag, data) SELECT ?, ?, CAST(? AS {bytes}) FROM journals WHERE journal = ?
ON CONFLICT (key) DO UPDATE SET etag = excluded.etag, data = excluded.data

-- name: found
SELECT journal, EXISTS (SELECT 1 FROM records r WHERE r.journal = j.journal) FROM journals j WHERE run = ?

-- name: lines
SELECT seq, CAST(line AS {bytes}) FROM records WHERE journal = ? AND seq > ? ORDER BY seq LIMIT ?

-- name: put_any
INSERT INTO objects (key, etag, data) VALUES (?, ?, ?)
ON CONFLICT (key) DO UPDATE SET etag = excluded.etag, data = excluded.data

-- name: put_new
INSERT INTO objects (key, etag, data) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING

-- name: put_over
UPDATE objects SET etag = ?, data = ? WHERE key = ? AND etag = ?

-- name: etag
SELECT etag FROM objects WHERE key = ?

-- name: get
SELECT CAST(data AS {bytes}), etag FROM objects WHERE key = ?

-- name: keys
SELECT key FROM objects WHERE key > ? AND key < ? ORDER BY key LIMIT ?

-- name: journals_below
SELECT journal FROM journals WHERE run = ? OR (run > ? AND run < ?)

-- name: keep_charges
INSERT INTO charges_kept SELECT * FROM charges WHERE journal = ?

-- name: remove_journal
DELETE FROM journals WHERE journal = ?

-- name: remove_objects
DELETE FROM objects WHERE key = ? OR (key > ? AND key < ?)

-- name: parts
SELECT path FROM journals WHERE run_id = ? AND path <> '' ORDER BY path

-- name: tips
WITH page AS (
  SELECT * FROM journals WHERE path = '' AND (stem, width, run_id) < (?, ?, ?)
  ORDER BY stem DESC, width DESC, run_id DESC LIMIT ?
)
SELECT j.stem, j.width, j.run_id, j.epoch, j.holder, {now} - j.beat_at, j.beat_at, CAST(o.data AS {bytes}),
  CAST(r.line AS {bytes}), (SELECT MAX(e.seq) FROM records e WHERE e.journal = j.journal)
FROM page j LEFT JOIN objects o ON o.key = 'runs/' || j.run_id || '/head'
LEFT JOIN records r ON r.journal = j.journal AND r.seq = 1
ORDER BY j.stem DESC, j.width DESC, j.run_id DESC

-- name: tips_of_claim
WITH page AS (
  SELECT * FROM journals WHERE path = '' AND (stem, width, run_id) < (?, ?, ?) AND claim = ?
  ORDER BY stem DESC, width DESC, run_id DESC LIMIT ?
)
SELECT j.stem, j.width, j.run_id, j.epoch, j.holder, {now} - j.beat_at, j.beat_at, CAST(o.data AS {bytes}),
  CAST(r.line AS {bytes}), (SELECT MAX(e.seq) FROM records e WHERE e.journal = j.journal)
FROM page j LEFT JOIN objects o ON o.key = 'runs/' || j.run_id || '/head'
LEFT JOIN records r ON r.journal = j.journal AND r.seq = 1
ORDER BY j.stem DESC, j.width DESC, j.run_id DESC

-- name: version (sqlite)
SELECT name FROM sqlite_master WHERE name IN ('pipeline_meta', 'alembic_version') ORDER BY name DESC

-- name: version (postgresql)
SELECT relname FROM pg_class WHERE oid IN (to_regclass('pipeline_meta'), to_regclass('alembic_version'))
ORDER BY relname DESC

-- From version 0005: the tables of then are renamed to old_…, and what they hold is moved.

-- name: move_journals
INSERT INTO journals (journal, run, run_id, path, stem, width, claim, epoch, holder, beat_at)
SELECT j.journal, j.run, j.run_id, j.path, j.stem, j.width, j.claim, COALESCE(l.epoch, 1000000),
  COALESCE(l.holder, ''), COALESCE(l.beat_at, 0)
FROM old_journals j LEFT JOIN old_leases l ON l.journal = j.journal

-- name: forget_numbers (sqlite)
DELETE FROM sqlite_sequence WHERE name = 'journals'

-- name: move_numbers (sqlite)
INSERT INTO sqlite_sequence (name, seq) SELECT 'journals', seq FROM sqlite_sequence WHERE name = 'old_journals'

-- name: move_numbers (postgresql)
SELECT setval(pg_get_serial_sequence('journals', 'journal'), nextval(pg_get_serial_sequence('old_journals', 'journal')))

-- name: move_records (sqlite)
INSERT INTO records (journal, seq, line, kind)
SELECT journal, seq, line, CASE
  WHEN instr(begin, '"kind":"call_started"') THEN 'call_started'
  WHEN instr(begin, '"kind":"call_ended"') THEN 'call_ended'
  WHEN instr(begin, '"kind":"charge_settled"') THEN 'charge_settled'
  WHEN instr(begin, '"kind":"document_kept"') THEN 'document_kept' END
FROM (SELECT journal, seq, line, substr(CAST(line AS TEXT), 1, 120) AS begin FROM old_records)

-- name: move_records (postgresql)
INSERT INTO records (journal, seq, line, kind)
SELECT journal, seq, line, CASE
  WHEN position('"kind":"call_started"'::BYTEA IN begin) > 0 THEN 'call_started'
  WHEN position('"kind":"call_ended"'::BYTEA IN begin) > 0 THEN 'call_ended'
  WHEN position('"kind":"charge_settled"'::BYTEA IN begin) > 0 THEN 'charge_settled'
  WHEN position('"kind":"document_kept"'::BYTEA IN begin) > 0 THEN 'document_kept' END
FROM (SELECT journal, seq, line, substring(line FROM 1 FOR 120) AS begin FROM old_records) AS each

-- name: move_heads
INSERT INTO objects (key, etag, data)
SELECT 'runs/' || run_id || '/head', 'moved', head FROM old_journals WHERE path = '' AND head IS NOT NULL

-- name: move_values
INSERT INTO objects (key, etag, data) SELECT 'runs/' || run_id || '/blobs/' || hash, 'moved', data FROM old_blobs

-- name: move_slices (sqlite)
INSERT INTO objects (key, etag, data)
SELECT 'account/' || day, 'moved', CAST(json_group_object(slice, json_array(owner, usd)) AS BLOB)
FROM old_slices GROUP BY day

-- name: move_slices (postgresql)
INSERT INTO objects (key, etag, data)
SELECT 'account/' || day, 'moved', convert_to(json_object_agg(slice, json_build_array(owner, usd))::TEXT, 'UTF8')
FROM old_slices GROUP BY day

-- name: move_sums
INSERT INTO objects (key, etag, data)
SELECT place || run_id, 'moved', {encoded}
FROM old_kept CROSS JOIN (SELECT 'kept/' AS place UNION ALL SELECT 'kept-again/') AS each

-- name: move_charges
INSERT INTO charges_kept SELECT journal, call, run_id, run, at, day, model, label, state, low, high
FROM old_charges WHERE run NOT IN (SELECT run FROM old_journals)
