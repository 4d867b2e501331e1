-- Tables and views of a SQLite database, version 0006.

CREATE TABLE pipeline_meta (version TEXT NOT NULL);

-- Older programs look here, and refuse what they do not know.
CREATE VIEW alembic_version AS SELECT version AS version_num FROM pipeline_meta;

CREATE TABLE journals (
  journal INTEGER PRIMARY KEY AUTOINCREMENT,
  -- A run, ID; a part of one, ID/PATH; or a claim, .claims/HASH. And its two halves.
  run TEXT NOT NULL UNIQUE,
  run_id TEXT NOT NULL,
  path TEXT NOT NULL,
  -- What newest first goes by: the moment in an id, then its length, then the id.
  stem TEXT NOT NULL,
  width INTEGER NOT NULL,
  -- JSON of the claim in the first record; '' for none.
  claim TEXT NOT NULL,
  -- Raised with each owner; only the owner with this epoch can write.
  epoch INTEGER NOT NULL,
  -- The owner as JSON; '' while there is none. When it last said that it lives: seconds since 1970, by this clock.
  holder TEXT NOT NULL,
  beat_at REAL NOT NULL
);
CREATE INDEX journals_newest ON journals (stem, width, run_id) WHERE path = '';
CREATE INDEX journals_run_id ON journals (run_id);

CREATE TABLE records (
  journal INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  -- As in journal.jsonl, without the newline.
  line BLOB NOT NULL,
  -- Of records that a view reads; else NULL.
  kind TEXT,
  PRIMARY KEY (journal, seq)
) WITHOUT ROWID;
CREATE INDEX records_kind ON records (kind, journal, seq) WHERE kind IS NOT NULL;

-- Heads, values, damaged bytes, fenced records; the account and sums of removed runs. See pipeline/store/backend.py.
CREATE TABLE objects (
  key TEXT NOT NULL PRIMARY KEY,
  etag TEXT NOT NULL,
  data BLOB NOT NULL
);

-- Charges of removed runs.
CREATE TABLE charges_kept (
  journal INTEGER NOT NULL,
  call INTEGER NOT NULL,
  run_id TEXT NOT NULL,
  run TEXT NOT NULL,
  at TEXT NOT NULL,
  day TEXT NOT NULL,
  model TEXT NOT NULL,
  label TEXT NOT NULL,
  state TEXT NOT NULL,
  low TEXT NOT NULL,
  high TEXT
);
CREATE INDEX charges_kept_run_id ON charges_kept (run_id);

-- The records that the other views read, as JSON; NULL where they are none. SQLite would end a text at a zero
-- character, so these are left out.
CREATE VIEW facts AS
SELECT journal, seq, kind, CASE WHEN NOT json_valid(text) THEN NULL
  WHEN instr(text, '\u0000') THEN replace(replace(replace(text, '\\', char(1)), '\u0000', ''), char(1), '\\')
  ELSE text END AS fact
FROM (SELECT journal, seq, kind, CAST(line AS TEXT) AS text FROM records WHERE kind IS NOT NULL);

-- What each call costs. Of all that is known of it counts: a correction, the last; else an amount that is exact, the
-- first; else its end, the first; else that it is open. What was copied from a part is a charge of that part.
CREATE VIEW charges AS
WITH known AS (
  SELECT journal, seq, kind,
    CASE WHEN kind = 'call_started' THEN seq ELSE json_extract(fact, '$.call') END AS call,
    CASE WHEN kind = 'call_started' AND COALESCE(json_extract(fact, '$.origin'), '') = ''
      THEN json_extract(fact, '$.at') END AS at,
    CASE WHEN kind = 'call_started' THEN json_extract(fact, '$.model') END AS asked,
    CASE WHEN kind = 'call_ended' THEN NULLIF(json_extract(fact, '$.charge.model'), '') END AS answered,
    CASE WHEN kind = 'call_started' THEN COALESCE(json_extract(fact, '$.label'), 'call') END AS label,
    CASE WHEN kind = 'call_started' THEN 'open' WHEN kind = 'charge_settled' THEN 'exact'
      WHEN json_extract(fact, '$.charge.state') IN ('exact', 'interval') THEN json_extract(fact, '$.charge.state')
      ELSE 'unpriced' END AS state,
    CASE WHEN kind = 'charge_settled' THEN json_extract(fact, '$.usd')
      WHEN kind = 'call_ended' THEN json_extract(fact, '$.charge.low') END AS low,
    CASE WHEN kind = 'charge_settled' THEN json_extract(fact, '$.usd')
      WHEN kind = 'call_ended' THEN json_extract(fact, '$.charge.high')
      ELSE json_extract(fact, '$.worst') END AS high,
    kind = 'charge_settled' AND COALESCE(json_extract(fact, '$.corrects'), 0) AS corrects
  FROM facts WHERE kind IN ('call_started', 'call_ended', 'charge_settled') AND fact IS NOT NULL
), ranked AS (
  SELECT journal, call, state, low, high,
    MAX(at) OVER each_call AS at, MAX(asked) OVER each_call AS asked, MAX(answered) OVER each_call AS answered,
    MAX(label) OVER each_call AS label,
    ROW_NUMBER() OVER (
      PARTITION BY journal, call
      ORDER BY corrects DESC, CASE WHEN corrects THEN -seq END,
        CASE state WHEN 'exact' THEN 1 WHEN 'open' THEN 3 ELSE 2 END, seq
    ) AS rank
  FROM known WINDOW each_call AS (PARTITION BY journal, call)
)
SELECT r.journal, r.call, j.run_id, j.run, r.at, substr(r.at, 1, 10) AS day,
  COALESCE(r.answered, r.asked) AS model, r.label, r.state,
  CASE WHEN r.state IN ('exact', 'interval') THEN COALESCE(r.low, '0') ELSE '0' END AS low,
  CASE WHEN r.state = 'unpriced' THEN NULL ELSE r.high END AS high
FROM ranked r JOIN journals j ON j.journal = r.journal WHERE r.rank = 1 AND r.at IS NOT NULL
UNION ALL
SELECT journal, call, run_id, run, at, day, model, label, state, low, high FROM charges_kept;

-- What runs had cost that were removed by `cleanup`, here or in the store that they came from.
CREATE VIEW kept_costs AS
WITH kept AS (
  SELECT substr(key, 6) AS run_id, CASE WHEN json_valid(text) THEN text END AS sums
  FROM (SELECT key, CAST(data AS TEXT) AS text FROM objects WHERE key >= 'kept/' AND key < 'kept0')
), parts AS (
  SELECT k.run_id, json_extract(e.value, '$.day') AS day, json_extract(e.value, '$.model') AS model, e.value AS part
  FROM kept k JOIN json_each(k.sums, '$.spend') e
  UNION ALL
  SELECT k.run_id, e.key, NULL, e.value FROM kept k JOIN json_each(k.sums, '$.days') e
  WHERE json_type(k.sums, '$.spend') IS NULL
  UNION ALL
  SELECT k.run_id, NULL, NULL, k.sums FROM kept k
  WHERE json_type(k.sums) = 'object' AND json_type(k.sums, '$.spend') IS NULL
    AND COALESCE(json_extract(k.sums, '$.days'), '{}') = '{}'
), amounts AS (
  SELECT run_id, NULLIF(day, '') AS day, COALESCE(model, '') AS model,
    COALESCE(json_extract(part, '$.calls'), 0) AS calls, json_extract(part, '$.outcome') = 'open' AS still_open,
    COALESCE(json_extract(part, '$.unpriced'), 0) + COALESCE(json_extract(part, '$.unbounded'), 0) AS unpriced_calls,
    CAST(COALESCE(json_extract(part, '$.usd'), '0') AS REAL) AS usd,
    CAST(COALESCE(json_extract(part, '$.low'), '0') AS REAL) AS low,
    CAST(COALESCE(json_extract(part, '$.high'), '0') AS REAL) AS high
  FROM parts WHERE COALESCE(day, '') = '' OR julianday(day) IS NOT NULL
)
SELECT run_id, day, model, calls, CASE WHEN still_open THEN calls ELSE 0 END AS open_calls, unpriced_calls,
  usd + low AS low, usd + high AS high
FROM amounts;

-- A run that is there counts by its charges; one that is gone by what was kept of it, if anything was.
CREATE VIEW costs_by_day AS
WITH gone AS (
  SELECT run_id FROM kept_costs WHERE run_id NOT IN (SELECT run FROM journals WHERE path = '')
), every AS (
  SELECT day, model, 1 AS calls, low, COALESCE(high, low) AS high, state = 'open' AS open_calls,
    high IS NULL AS unpriced_calls
  FROM charges WHERE run_id NOT IN (SELECT run_id FROM gone)
  UNION ALL
  SELECT day, model, calls, low, high, open_calls, unpriced_calls FROM kept_costs
  WHERE run_id IN (SELECT run_id FROM gone)
)
SELECT day, model, CAST(SUM(calls) AS INTEGER) AS calls, printf('%.6f', SUM(low)) AS low_usd,
  printf('%.6f', SUM(high)) AS high_usd, CAST(SUM(open_calls) AS INTEGER) AS open_calls,
  CAST(SUM(unpriced_calls) AS INTEGER) AS unpriced_calls
FROM every GROUP BY day, model;

CREATE VIEW runs AS
WITH heads AS (
  SELECT j.*, CASE WHEN json_valid(CAST(o.data AS TEXT))
    THEN replace(replace(replace(CAST(o.data AS TEXT), '\\', char(1)), '\u0000', ''), char(1), '\\') END AS head
  FROM journals j LEFT JOIN objects o ON o.key = 'runs/' || j.run_id || '/head' WHERE j.path = ''
)
SELECT run_id, json_extract(head, '$.pipeline') AS pipeline,
  json_extract(head, '$.subject') AS subject, json_extract(head, '$.level') AS level,
  json_extract(head, '$.status') AS status, json_extract(head, '$.status_detail') AS status_detail,
  CASE WHEN julianday(json_extract(head, '$.started_at')) IS NOT NULL THEN json_extract(head, '$.started_at') END
    AS started_at,
  CASE WHEN julianday(json_extract(head, '$.updated_at')) IS NOT NULL THEN json_extract(head, '$.updated_at') END
    AS updated_at,
  printf('%.6f', json_extract(head, '$.total_cost_usd')) AS total_cost_usd,
  (SELECT MAX(r.seq) FROM records r WHERE r.journal = heads.journal) AS records,
  CASE WHEN holder <> '' AND abs((julianday('now') - 2440587.5) * 86400.0 - beat_at) <= 30 THEN 1 ELSE 0 END AS owned
FROM heads WHERE EXISTS (SELECT 1 FROM records r WHERE r.journal = heads.journal);

-- Checkpoints of layered runs that were not pruned: the columns of seeds/003, and the record that each is of.
CREATE VIEW workflow_checkpoints AS
WITH documents AS (
  SELECT journal, seq, json_extract(fact, '$.content') AS document FROM facts
  WHERE kind = 'document_kept' AND json_extract(fact, '$.source') = 'casys'
), typed AS (
  SELECT journal, seq, document, json_extract(document, '$.type') AS type, json_extract(document, '$.keep') AS keep,
    CASE WHEN json_extract(document, '$.type') = 'pruned' THEN json_extract(document, '$.upto') END AS upto
  FROM documents WHERE json_valid(document) AND json_type(document) = 'object'
), numbered AS (
  SELECT *, SUM(type = 'checkpoint') OVER (PARTITION BY journal ORDER BY seq) AS number FROM typed
), pruned AS (
  SELECT *, COALESCE(MAX(upto) OVER (PARTITION BY journal), 0) AS gone_to,
    COALESCE(MAX(CASE WHEN type = 'checkpoint' AND keep > 0 THEN number - keep END) OVER (PARTITION BY journal), 0)
      AS gone_number
  FROM numbered
), shown AS (
  SELECT *, COALESCE(json_extract(document, '$.shown'), document) AS shown FROM pruned
  WHERE type = 'checkpoint' AND seq > gone_to AND number > gone_number
)
SELECT json_extract(document, '$.id') AS id, json_extract(document, '$.workflow_id') AS workflow_id,
  json_extract(document, '$.timestamp') AS timestamp, json_extract(document, '$.layer_index') AS layer_index,
  json_extract(shown, '$.state') AS state, json_extract(shown, '$.dag') AS dag_structure,
  json_extract(shown, '$.config') AS execution_config, journal, seq
FROM shown;
