/** The statements of the request path. No procedures, notifications or advisory locks: any PostgreSQL will do. */
import { STRIKES_PER_MINUTE_LIMIT } from '../access/limits.ts';
import { BAN_MINUTES, MAX_BANS } from '../access/plans.ts';

/** The most batches that come with one statement; further ones are fetched before any request is answered. */
export const TAIL_ROWS = 128;
/** A row of `limits` that limits nobody: writing to it is a commit (a fence), possible only at today's primary. */
export const FENCE_SLOT = -1;

const ms = (moment: string) => `(extract(epoch FROM ${moment}) * 1000)::float8`;
/**
 * Takes `$2[i]` tokens for the caller in slot `$1[i]`, as SlotLimiter does it for one after the other, at the time of
 * the database; `$4` is --ban-after, -1 without it. Rows are locked in the order of their slots, so that two replicas
 * cannot deadlock. A row gives the counts before, the tokens given, and the ends of windows and ban; no end is later
 * than its own length from now, should the clock have been set back. With it comes the log behind batch `$3`, and that
 * batch without its text.
 */
export const TAKE = `WITH
asked AS MATERIALIZED (SELECT * FROM unnest($1::int[], $2::int[]) AS a(slot, n)),
held AS MATERIALIZED (
  SELECT l.slot, per_minute, per_day, minute_used, day_used, strikes, ban_step, a.n, now() AS at,
    least(minute_ends, now() + interval '1 minute') AS minute_ends,
    least(day_ends, now() + interval '1 day') AS day_ends,
    least(ban_ends, now() + (ARRAY[${BAN_MINUTES.slice(1)}])[ban_step] * interval '1 minute') AS ban_ends
  FROM limits l JOIN asked a ON a.slot = l.slot ORDER BY l.slot FOR UPDATE OF l),
open AS (SELECT h.*, ban_ends > at AS banned, CASE WHEN minute_ends > at THEN minute_used ELSE 0 END AS mu,
  CASE WHEN day_ends > at THEN day_used ELSE 0 END AS du FROM held h),
given AS (
  SELECT o.*, CASE WHEN banned THEN 0 ELSE greatest(0, least(n, per_minute - mu, per_day - du)) END AS g FROM open o),
refused AS (
  SELECT i.*, CASE WHEN banned THEN 0 ELSE n - g END AS r, minute_ends > at AND NOT (g > 0 AND mu = 0) AS goes_on,
    greatest(0, ban_step - greatest(0, floor(extract(epoch FROM at - ban_ends) / 86400)::int)) AS standing
  FROM given i),
struck AS (
  SELECT f.*, goes_on OR g > 0 OR r > 0 AS opens, CASE WHEN goes_on THEN strikes ELSE 0 END AS s0,
    r > 0 AND $4::int <> 0 AND (CASE WHEN goes_on THEN strikes ELSE 0 END) + r >= (
      CASE WHEN $4::int < 0 THEN ${STRIKES_PER_MINUTE_LIMIT} * per_minute::bigint ELSE $4::int END) AS bans
  FROM refused f),
taken AS (
  UPDATE limits l SET
    minute_used = CASE WHEN s.opens THEN s.mu + s.g ELSE l.minute_used END,
    minute_ends = CASE WHEN s.goes_on OR NOT s.opens THEN s.minute_ends ELSE s.at + interval '1 minute' END,
    day_used = CASE WHEN s.g > 0 THEN s.du + s.g ELSE l.day_used END,
    day_ends = CASE WHEN s.g > 0 AND s.du = 0 THEN s.at + interval '1 day' ELSE s.day_ends END,
    strikes = CASE WHEN s.bans THEN 0 WHEN s.opens THEN s.s0 + s.r ELSE l.strikes END,
    ban_step = CASE WHEN s.bans THEN least(s.standing + 1, ${MAX_BANS}) ELSE l.ban_step END,
    ban_ends = CASE WHEN s.bans THEN s.at + (ARRAY[${BAN_MINUTES.slice(1)}])[least(s.standing + 1, ${MAX_BANS})]
      * interval '1 minute' ELSE s.ban_ends END
  FROM struck s WHERE l.slot = s.slot
  RETURNING l.slot, s.g, s.per_minute, s.per_day, s.mu, s.du, s.s0, s.standing, s.banned, s.bans,
    s.at, l.minute_ends, l.day_ends, l.ban_ends)
SELECT slot, g, per_minute, per_day, mu, du, s0, standing, banned, bans, ${ms('at')} AS at,
  ${ms('minute_ends')} AS minute_ends, ${ms('day_ends')} AS day_ends, ${ms('ban_ends')} AS ban_ends,
  NULL::bigint AS batch, NULL AS id, NULL AS body FROM taken
UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, batch, id, body
  FROM (SELECT batch, id, CASE WHEN batch > $3::bigint THEN body END AS body FROM log
    WHERE batch >= $3::bigint ORDER BY batch LIMIT ${TAIL_ROWS}) t`;

/** The lab may have moved an end to before 1970, and no kept moment is before that. */
export const LIMITS = `SELECT (SELECT id FROM head) AS head, slot, per_minute AS "perMinute", per_day AS "perDay",
  day_used AS "dayUsed", greatest(0, ceil(${ms('day_ends')})) AS "dayEndsAt",
  ban_step AS "banStep", greatest(0, ceil(${ms('ban_ends')})) AS "banEndsAt" FROM limits`;

const LIFTED = `strikes = 0, ban_step = 0, ban_ends = 'epoch'`;
export const LIFT = `UPDATE limits SET ${LIFTED} WHERE slot = $1 RETURNING 1`;
export const REFILL = `UPDATE limits SET ${LIFTED}, minute_used = 0, day_used = 0, minute_ends = 'epoch',
  day_ends = 'epoch' WHERE slot = $1`;

/**
 * Appends batch `$1` with the id `$2` and the text `$3`, if batch `$1 - 1` is the last and has the id `$4`; else no
 * row. The same commit sets the limits `$5`, and lets `ms` pass for their caller alone.
 */
export const APPEND = `WITH
h AS (UPDATE head SET batch = $1, id = $2 WHERE one = 1 AND batch = $1::bigint - 1 AND id = $4::text RETURNING 1),
changed AS (SELECT c.*, ms * interval '1 millisecond' AS passed
  FROM h, json_to_recordset($5::json) AS c(slot int, "perMinute" int, "perDay" int, ms float8)),
limited AS (
  INSERT INTO limits AS l (slot, per_minute, per_day) SELECT slot, "perMinute", "perDay" FROM changed ORDER BY slot
  ON CONFLICT (slot) DO UPDATE SET per_minute = excluded.per_minute, per_day = excluded.per_day,
    (minute_ends, day_ends, ban_ends) = (SELECT l.minute_ends - passed, l.day_ends - passed, l.ban_ends - passed
      FROM changed c WHERE c.slot = l.slot))
INSERT INTO log SELECT $1::bigint, $2::text, $3::text FROM h`;

/** READ COMMITTED, whatever the default is: a transaction that has waited for the lock must see the batches before. */
export const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED';
/** For transactions that stand still for more than the second otherwise allowed. */
const LONGER = "SET LOCAL idle_in_transaction_session_timeout = '60s'";
export const BEGIN_LONG = `${BEGIN}; ${LONGER}`;
export const BEGIN_READING = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${LONGER}`;
export const COMMIT = 'COMMIT';
export const LOCK_HEAD = 'SELECT 1 FROM head WHERE one = 1 FOR UPDATE';

export const PUT_LIMITS = `INSERT INTO limits (slot, per_minute, per_day, day_used, day_ends, ban_step, ban_ends)
SELECT slot, "perMinute", "perDay", "dayUsed", to_timestamp("dayEndsAt" / 1000),
  "banStep", to_timestamp("banEndsAt" / 1000) FROM json_to_recordset($1::json)
  AS l(slot int, "perMinute" int, "perDay" int, "dayUsed" int, "dayEndsAt" float8, "banStep" int, "banEndsAt" float8)`;
/** Begins another history in a store without any batch; replicas that know the old one end. */
export const NEW_HISTORY = `WITH h AS (UPDATE head SET id = $1
  WHERE one = 1 AND batch = 0 AND NOT EXISTS (SELECT 1 FROM snapshots) RETURNING 1)
UPDATE log SET id = $1 FROM h WHERE batch = 0 RETURNING 1`;
export const SERVER = `SELECT current_setting('server_version_num')::int AS version,
  current_setting('synchronous_standby_names') = '' AS is_alone, ${ms('clock_timestamp()')} AS at`;
/**
 * The condition that a lease of a minute in `work` holds. One that seems to hold for longer is of a clock that was set
 * back since; twice its length is allowed, for another statement's `now()` may be a little later.
 */
export const IS_LEASED = "until BETWEEN now() AND now() + interval '2 minutes'";
/**
 * True if the log is so long (`$1` bytes, and longer than the newest snapshot) that a new one is due; and the owner of
 * a long transaction, which slows down rows that are changed often.
 */
export const LOOK_AFTER = `WITH newest AS (SELECT coalesce(max(batch), -1) AS batch FROM snapshots)
SELECT (SELECT coalesce(sum(octet_length(body)), 0) FROM log WHERE batch > newest.batch) > greatest($1::bigint,
    (SELECT sum(octet_length(body)) FROM snapshot s WHERE s.batch = newest.batch))
    AND NOT EXISTS (SELECT 1 FROM work WHERE ${IS_LEASED}) AS is_due,
  (SELECT format('process %s of %s (%s: %s) has one open for %s s', pid, usename, application_name,
      coalesce(wait_event, state), floor(extract(epoch FROM now() - xact_start)))
    FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
      AND xact_start < now() - interval '5 seconds' ORDER BY xact_start LIMIT 1) AS long
FROM newest`;
