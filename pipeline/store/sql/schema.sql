-- Tables and views, version 0006, made in this order. What stands in braces each dialect says in its own way, as
-- pipeline/store/sql/connections.py has it. A name with a dialect behind it is for that one alone.

-- name: meta
CREATE TABLE pipeline_meta (version TEXT NOT NULL)

-- name: alembic_version
-- Older programs look here, and refuse what they do not know.
CREATE VIEW alembic_version AS SELECT version AS version_num FROM pipeline_meta

-- name: journals
-- Keys are in byte order, whatever the server's language: names are sorted and compared by it.
CREATE TABLE journals (
  journal {identity} PRIMARY KEY{counted},
  -- A run, ID; a part of one, ID/PATH; or a claim, .claims/HASH. And its two halves.
  run {key} NOT NULL UNIQUE,
  run_id {key} NOT NULL,
  path {key} NOT NULL,
  -- What newest first goes by: the moment in an id, then its length, then the id.
  stem {key} NOT NULL,
  width INTEGER NOT NULL,
  -- JSON of the claim in the first record; '' for none.
  claim TEXT NOT NULL,
  -- Raised with each owner; only the owner with this epoch can write.
  epoch {number} NOT NULL,
  -- The owner as JSON; '' while there is none. When it last said that it lives: seconds since 1970, by this clock.
  holder TEXT NOT NULL,
  beat_at {seconds} NOT NULL
)

-- name: journals_newest
CREATE INDEX journals_newest ON journals (stem, width, run_id) WHERE path = ''

-- name: journals_run_id
CREATE INDEX journals_run_id ON journals (run_id)

-- name: records
CREATE TABLE records (
  journal {number} NOT NULL,
  seq {number} NOT NULL,
  -- As in journal.jsonl, without the newline.
  line {bytes} NOT NULL,
  -- Of records that a view reads; else NULL.
  kind TEXT,
  PRIMARY KEY (journal, seq)
){clustered}

-- name: records_kind
CREATE INDEX records_kind ON records (kind, journal, seq) WHERE kind IS NOT NULL

-- name: objects
-- Heads, values, damaged bytes, fenced records; the account and sums of removed runs. See pipeline/store/backend.py.
CREATE TABLE objects (
  key {key} NOT NULL PRIMARY KEY,
  etag TEXT NOT NULL,
  data {bytes} NOT NULL
)

-- name: charges_kept
-- Charges of removed runs.
CREATE TABLE charges_kept (
  journal {number} NOT NULL,
  call {number} NOT NULL,
  run_id TEXT NOT NULL,
  run TEXT NOT NULL,
  at {moment} NOT NULL,
  day {date} NOT NULL,
  model TEXT NOT NULL,
  label TEXT NOT NULL,
  state TEXT NOT NULL,
  low {amount} NOT NULL,
  high {amount}
)

-- name: charges_kept_run_id
CREATE INDEX charges_kept_run_id ON charges_kept (run_id)

-- name: json (postgresql)
-- JSON of bytes; NULL where they are none. What JSONB cannot hold, zero characters and halves of pairs, is left out.
CREATE FUNCTION pipeline_json(data BYTEA) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN convert_from(data, 'UTF8')::JSONB;
EXCEPTION WHEN others THEN
  BEGIN
    RETURN regexp_replace(
      convert_from(data, 'UTF8'),
      '(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u0000|\\u[dD][89a-fA-F][0-9a-fA-F]{2}',
      '\1', 'g')::JSONB;
  EXCEPTION WHEN others THEN
    RETURN NULL;
  END;
END $$

-- name: time (postgresql)
-- A moment of a text; NULL where it is none.
CREATE FUNCTION pipeline_time(text TEXT) RETURNS TIMESTAMPTZ LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN CASE WHEN text ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+Z)?$' THEN text::TIMESTAMPTZ END;
EXCEPTION WHEN others THEN
  RETURN NULL;
END $$

-- name: number (postgresql)
-- An amount or a number of a text; NULL where it is none.
CREATE FUNCTION pipeline_number(text TEXT) RETURNS NUMERIC LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE WHEN text ~ '^[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?$' THEN text::NUMERIC END;
EXCEPTION WHEN others THEN
  RETURN NULL;
END $$

-- name: facts
-- The records that the other views read, as JSON; NULL where they are none.
CREATE VIEW facts AS
SELECT journal, seq, kind, {json line} AS fact FROM records WHERE kind IS NOT NULL

-- name: charges
-- What each call costs. Of all that is known of it counts: a correction, the last; else an amount that is exact, the
-- first; else its end, the first; else that it is open. What was copied from a part is a charge of that part.
CREATE VIEW charges AS
WITH known AS (
  SELECT journal, seq, kind,
    CASE WHEN kind = 'call_started' THEN seq ELSE {whole {text fact call}} END AS call,
    CASE WHEN kind = 'call_started' AND COALESCE({text fact origin}, '') = '' THEN {text fact at} END AS at,
    CASE WHEN kind = 'call_started' THEN {text fact model} END AS asked,
    CASE WHEN kind = 'call_ended' THEN NULLIF({text fact charge.model}, '') END AS answered,
    CASE WHEN kind = 'call_started' THEN COALESCE({text fact label}, 'call') END AS label,
    CASE WHEN kind = 'call_started' THEN 'open' WHEN kind = 'charge_settled' THEN 'exact'
      WHEN {text fact charge.state} IN ('exact', 'interval') THEN {text fact charge.state}
      ELSE 'unpriced' END AS state,
    CASE WHEN kind = 'charge_settled' THEN {text fact usd}
      WHEN kind = 'call_ended' THEN {text fact charge.low} END AS low,
    CASE WHEN kind = 'charge_settled' THEN {text fact usd}
      WHEN kind = 'call_ended' THEN {text fact charge.high}
      ELSE {text fact worst} END AS high,
    kind = 'charge_settled' AND {true fact corrects} AS corrects
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
SELECT r.journal, r.call, CAST(j.run_id AS TEXT) AS run_id, CAST(j.run AS TEXT) AS run, {time r.at} AS at,
  {day r.at} AS day, COALESCE(r.answered, r.asked) AS model, r.label, r.state,
  CASE WHEN r.state IN ('exact', 'interval') THEN COALESCE({exact r.low}, {zero}) ELSE {zero} END AS low,
  CASE WHEN r.state = 'unpriced' THEN NULL ELSE {exact r.high} END AS high
FROM ranked r JOIN journals j ON j.journal = r.journal WHERE r.rank = 1 AND r.at IS NOT NULL
UNION ALL
SELECT journal, call, run_id, run, at, day, model, label, state, low, high FROM charges_kept

-- name: kept_costs
-- What runs had cost that were removed by `cleanup`, here or in the store that they came from.
CREATE VIEW kept_costs AS
WITH kept AS (
  SELECT substr(key, 6) AS run_id, {json data} AS sums FROM objects WHERE key >= 'kept/' AND key < 'kept0'
), parts AS (
  SELECT k.run_id, {text e.value day} AS day, {text e.value model} AS model, e.value AS part
  FROM kept k {each_row k.sums spend}
  UNION ALL
  SELECT k.run_id, e.key, NULL, e.value FROM kept k {each_member k.sums days} WHERE NOT {has k.sums spend}
  UNION ALL
  SELECT k.run_id, NULL, NULL, k.sums FROM kept k
  WHERE {object k.sums} AND NOT {has k.sums spend} AND COALESCE({part k.sums days}, '{}') = '{}'
), amounts AS (
  SELECT run_id, {known_day day} AS day, COALESCE(model, '') AS model,
    {count {text part calls}} AS calls, {text part outcome} = 'open' AS still_open,
    {count {text part unpriced}} + {count {text part unbounded}} AS unpriced_calls,
    {usd {text part usd}} AS usd, {usd {text part low}} AS low, {usd {text part high}} AS high
  FROM parts WHERE COALESCE(day, '') = '' OR {known_time day} IS NOT NULL
)
SELECT run_id, day, model, calls, CASE WHEN still_open THEN calls ELSE 0 END AS open_calls, unpriced_calls,
  usd + low AS low, usd + high AS high
FROM amounts

-- name: costs_by_day
-- A run that is there counts by its charges; one that is gone by what was kept of it, if anything was.
CREATE VIEW costs_by_day AS
WITH gone AS (
  SELECT run_id FROM kept_costs WHERE run_id NOT IN (SELECT run FROM journals WHERE path = '')
), every AS (
  SELECT day, model, 1 AS calls, low, COALESCE(high, low) AS high,
    CASE WHEN state = 'open' THEN 1 ELSE 0 END AS open_calls, CASE WHEN high IS NULL THEN 1 ELSE 0 END AS unpriced_calls
  FROM charges WHERE run_id NOT IN (SELECT run_id FROM gone)
  UNION ALL
  SELECT day, model, calls, low, high, open_calls, unpriced_calls FROM kept_costs
  WHERE run_id IN (SELECT run_id FROM gone)
)
SELECT day, model, CAST(SUM(calls) AS {number}) AS calls, {shown SUM(low)} AS low_usd, {shown SUM(high)} AS high_usd,
  CAST(SUM(open_calls) AS {number}) AS open_calls, CAST(SUM(unpriced_calls) AS {number}) AS unpriced_calls
FROM every GROUP BY day, model

-- name: runs
CREATE VIEW runs AS
WITH heads AS (
  SELECT j.*, {json o.data} AS head
  FROM journals j LEFT JOIN objects o ON o.key = 'runs/' || j.run_id || '/head' WHERE j.path = ''
)
SELECT run_id, {text head pipeline} AS pipeline, {text head subject} AS subject, {text head level} AS level,
  {text head status} AS status, {text head status_detail} AS status_detail,
  {known_time {text head started_at}} AS started_at, {known_time {text head updated_at}} AS updated_at,
  {rounded {text head total_cost_usd}} AS total_cost_usd,
  (SELECT MAX(r.seq) FROM records r WHERE r.journal = heads.journal) AS records,
  CASE WHEN holder <> '' AND abs({now} - beat_at) <= 30 THEN 1 ELSE 0 END AS owned
FROM heads WHERE EXISTS (SELECT 1 FROM records r WHERE r.journal = heads.journal)

-- name: workflow_checkpoints
-- Checkpoints of layered runs that were not pruned: the columns of seeds/003, and the record that each is of.
CREATE VIEW workflow_checkpoints AS
WITH documents AS (
  SELECT journal, seq, {part fact content} AS document FROM facts
  WHERE kind = 'document_kept' AND {text fact source} = 'casys'
), typed AS (
  SELECT journal, seq, document, {text document type} AS type, {exact {text document keep}} AS keep,
    CASE WHEN {text document type} = 'pruned' THEN {exact {text document upto}} END AS upto
  FROM documents WHERE {object document}
), numbered AS (
  SELECT *, SUM(CASE WHEN type = 'checkpoint' THEN 1 ELSE 0 END) OVER (PARTITION BY journal ORDER BY seq) AS number
  FROM typed
), pruned AS (
  SELECT *, COALESCE(MAX(upto) OVER (PARTITION BY journal), 0) AS gone_to,
    COALESCE(MAX(CASE WHEN type = 'checkpoint' AND keep > 0 THEN number - keep END) OVER (PARTITION BY journal), 0)
      AS gone_number
  FROM numbered
), shown AS (
  SELECT *, COALESCE({part document shown}, document) AS shown FROM pruned
  WHERE type = 'checkpoint' AND seq > gone_to AND number > gone_number
)
SELECT {text document id} AS id, {text document workflow_id} AS workflow_id,
  {time {text document timestamp}} AS timestamp, {index {text document layer_index}} AS layer_index,
  {part shown state} AS state, {part shown dag} AS dag_structure, {part shown config} AS execution_config, journal, seq
FROM shown
