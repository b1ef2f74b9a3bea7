-- The tables of a date by docs/reconciliation.md, from the rows `archived` of its archive.
-- No tap, no spool and no replay is in it; a delivery is late after 300 seconds.

CREATE MACRO half_octave(time) AS
    CASE WHEN time < 2 THEN time
        WHEN time < 3 * (1 << length(bin(time)) - 1) // 2 THEN 3 * (1 << length(bin(time)) - 1) // 2 - 1
        ELSE (1 << length(bin(time))) - 1 END;
CREATE MACRO no_longer_than(times, share) AS half_octave(list_sort(times)[ceil(share * len(times))::INT]);

CREATE TABLE copies AS
WITH receipts AS (
    SELECT gateway, route, unnest(targets) AS target, id, name, size, hash, received, redelivered
    FROM archived WHERE leg = 'received'
), outcomes AS (
    SELECT gateway, route, target, id, count(*) AS outcomes,
        count(*) FILTER (leg = 'delivered') AS deliveries,
        count(*) FILTER (leg = 'delivered' AND attempt = 1) AS firsts,
        min(epoch_us(time)) FILTER (leg = 'delivered') AS delivered,
        list(DISTINCT hash) FILTER (leg = 'delivered') AS hashes,
        min(source_name) AS source_name, min(size) AS size, min(received) AS received,
        max(time) AS end_time, max(name) FILTER (leg = 'delivered') AS sent_name,
        min(rule) AS rule, min(reason) AS reason
    FROM archived WHERE leg IN ('delivered', 'dead') GROUP BY ALL
), both_sides AS (
    SELECT gateway, route, target, lower(hex(id)) AS id, r.id IS NOT NULL AS was_received,
        coalesce(outcomes, 0) AS outcomes, coalesce(deliveries, 0) AS deliveries, firsts, hashes,
        r.hash AS hash, coalesce(name, source_name) AS name, coalesce(r.size, o.size) AS size,
        rule, reason, coalesce(r.received, o.received) AS receipt, redelivered, end_time, sent_name,
        delivered - epoch_us(coalesce(r.received, o.received)) AS latency,
        delivered < max(delivered) OVER (
            PARTITION BY gateway, route, target, source_name ORDER BY id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS overtook
    FROM receipts r FULL JOIN outcomes o USING (gateway, route, target, id)
)
SELECT *, CASE
    WHEN NOT was_received THEN 'unexpected'
    WHEN deliveries > 0 AND hashes <> [hash] THEN 'altered'
    WHEN deliveries > 0 AND outcomes > 1 THEN 'duplicated'
    WHEN overtook THEN 'out of order'
    WHEN latency > 300_000_000 THEN 'delivered late'
    WHEN deliveries > 0 THEN 'delivered'
    WHEN rule IS NOT NULL THEN 'refused'
    ELSE 'missing'
END AS class FROM both_sides;

CREATE VIEW tallied AS
SELECT gateway, route, target, receipt, CASE WHEN was_received THEN latency END AS latency,
    was_received::INT AS received, (class = 'missing')::INT AS missing, 0 AS lost_in_target,
    (class = 'altered')::INT AS altered, (class = 'unexpected')::INT AS unexpected,
    (class = 'duplicated')::INT AS duplicated, (class = 'out of order')::INT AS out_of_order,
    (class = 'delivered late')::INT AS delivered_late, 0 AS dead_lettered,
    (class = 'refused')::INT AS refused, 0 AS in_flight, 0 AS recovered,
    (class = 'delivered')::INT AS delivered,
    (class = 'duplicated' AND firsts < 2)::INT AS marked,
    coalesce(redelivered, false)::INT AS redelivered, (deliveries > firsts)::INT AS resent
FROM copies;

CREATE VIEW minutes AS
SELECT gateway, route, target, date_trunc('minute', receipt) AS minute,
    sum(COLUMNS(* EXCLUDE (gateway, route, target, receipt, latency)))
FROM tallied GROUP BY ALL;

CREATE VIEW routes AS
SELECT route, target, sum(COLUMNS(* EXCLUDE (gateway, route, target, receipt, latency)))
FROM tallied GROUP BY ALL;

CREATE VIEW gateways AS
SELECT gateway, sum(COLUMNS(* EXCLUDE (gateway, route, target, receipt, latency)))
FROM tallied GROUP BY ALL;

CREATE VIEW hours AS
WITH found AS (
    SELECT date_trunc('hour', receipt) AS hour, route, target,
        sum(COLUMNS(* EXCLUDE (gateway, route, target, receipt, latency))),
        list(latency) FILTER (latency IS NOT NULL) AS times
    FROM tallied GROUP BY ALL
)
SELECT * EXCLUDE times, received / 3600 AS rate, len(times) AS timed,
    no_longer_than(times, 0.5) AS p50, no_longer_than(times, 0.9) AS p90,
    no_longer_than(times, 0.99) AS p99, no_longer_than(times, 1) AS slowest
FROM found;

CREATE VIEW exceptions AS
SELECT class, gateway, route, target, id, receipt AS received_time, end_time, latency, deliveries,
    0 AS sightings, deliveries = 0 OR firsts <= 1 AND deliveries = outcomes AS marked, name, size,
    sent_name, rule, reason
FROM copies WHERE class <> 'delivered';

CREATE VIEW dead_letters AS
SELECT class, route, target, rule, count(*) AS copies, min(id) AS id, arg_min(name, id) AS name,
    arg_min(reason, id) AS reason
FROM exceptions WHERE class = 'refused' GROUP BY ALL;

CREATE VIEW names AS
SELECT route, name, count(*) AS copies,
    sum(COLUMNS(* EXCLUDE (gateway, route, target, receipt, latency, name, received, in_flight,
        delivered, marked, redelivered, resent)))
FROM (FROM tallied POSITIONAL JOIN (SELECT name FROM copies))
WHERE delivered = 0 GROUP BY ALL;

-- No key signs a path; a row of the same name and payload at the same endpoint proves a cut, once.
CREATE VIEW judged_cuts AS
WITH evidence AS (
    SELECT gateway, endpoint, name, hash, count(DISTINCT id) AS rows, min(received) AS since
    FROM archived WHERE leg IN ('received', 'delivered') GROUP BY ALL
), own AS (
    SELECT *, row_number() OVER (
        PARTITION BY gateway, route, target, endpoint, name, hash ORDER BY received, id
    ) AS number FROM archived WHERE leg = 'cut'
)
SELECT own.*, CASE
    WHEN rule IN ('ignored', 'unselected', 'loop-limit', 'thinned') THEN 'left out'
    WHEN number <= rows AND since <= received THEN 'cut'
    ELSE 'cut on another''s word'
END AS class
FROM own LEFT JOIN evidence USING (gateway, endpoint, name, hash);

CREATE VIEW cuts AS
SELECT gateway, route, target, endpoint, rule, class, count(*) AS copies
FROM judged_cuts GROUP BY ALL;

CREATE VIEW cut_exceptions AS
SELECT class, gateway, route, target, endpoint, rule, lower(hex(id)) AS id, name,
    received AS received_time, size
FROM judged_cuts WHERE class = 'cut on another''s word';
