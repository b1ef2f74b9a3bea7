-- The tables `hops` and `renamed` of the chain plant -> bus -> core -> hub -> office, by
-- docs/reconciliation.md, from the rows `archived`. Every message has its trace id.

CREATE VIEW ends AS
FROM (VALUES ('plant', 'up', 'bus', 'bus', 'core', 'across'),
    ('core', 'across', 'hub', 'hub', 'office', 'down'))
    ends(gateway, route, target, broker, receiver, receiver_route);

CREATE VIEW receipts AS
SELECT gateway AS receiver, trace, name, hash, epoch_us(time) AS moment, leg = 'cut' AS known,
    coalesce(redelivered, false) AS marked, outcome = 'signed' AS signed
FROM archived WHERE leg IN ('received', 'cut');

CREATE VIEW gaps AS
SELECT gateway AS receiver, endpoint AS broker, epoch_us("begin") AS since, epoch_us(time) AS until
FROM archived WHERE leg = 'gap' AND rule = 'disconnected';

-- A message for each delivery; one of another payload with its id proves nothing, but where the
-- message has no receipt and the path is signed.
CREATE TABLE messages AS
WITH sent AS (
    SELECT ends.*, id, trace, name, hash, epoch_us(time) AS sent_at
    FROM archived JOIN ends USING (gateway, route, target) WHERE leg = 'delivered'
), received AS (
    SELECT receiver, trace, name, hash, count(*) AS receipts, min(moment) AS moment,
        count(*) FILTER (NOT marked) AS unmarked
    FROM receipts WHERE NOT known GROUP BY ALL
), others AS (
    SELECT sent.*, o.moment, o.known, o.signed, o.hash <> sent.hash AS differs
    FROM sent JOIN receipts o USING (receiver, trace, name) WHERE o.known OR o.hash <> sent.hash
), judged AS (
    SELECT sent.*, r.moment AS received_at, r.unmarked <= 1 AS allowed, CASE
        WHEN receipts > 1 THEN 'duplicated'
        WHEN r.moment - sent_at > 300_000_000 THEN 'delivered late'
        WHEN receipts = 1 THEN 'delivered'
        WHEN EXISTS (FROM others o WHERE o.id = sent.id AND o.receiver = sent.receiver AND signed)
            THEN 'altered'
        WHEN EXISTS (FROM gaps g WHERE g.receiver = sent.receiver AND g.broker = sent.broker
            AND sent_at BETWEEN since AND until) THEN 'in gap'
        ELSE 'missing'
    END AS class
    FROM sent LEFT JOIN received r USING (receiver, trace, name, hash)
)
SELECT broker, gateway, route, target, receiver, receiver_route, id, name, sent_at, class,
    CASE class WHEN 'altered' THEN (
        SELECT min(moment) FROM others o WHERE o.id = judged.id AND signed
    ) ELSE received_at END AS received_at,
    class = 'duplicated' AND allowed AS marked
FROM judged
UNION ALL
SELECT broker, gateway, route, target, receiver, receiver_route, id, name, sent_at,
    CASE WHEN differs THEN 'unproven' ELSE 'recognised' END, moment, false
FROM others WHERE NOT signed;

CREATE VIEW hops AS
SELECT broker, gateway, route, target, receiver, receiver_route,
    count(*) FILTER (class NOT IN ('unproven', 'recognised')) AS expected,
    count(*) FILTER (class = 'missing') AS missing,
    count(*) FILTER (class = 'altered') AS altered,
    count(*) FILTER (class = 'duplicated') AS duplicated,
    count(*) FILTER (class = 'delivered late') AS delivered_late,
    count(*) FILTER (class = 'in gap') AS in_gap,
    count(*) FILTER (class = 'delivered') AS delivered,
    count(*) FILTER (class = 'unproven') AS unproven,
    count(*) FILTER (class = 'recognised') AS recognised,
    count(*) FILTER (marked) AS marked
FROM messages GROUP BY ALL;

CREATE VIEW hop_exceptions AS
SELECT class, broker, gateway, route, target, receiver, receiver_route, lower(hex(id)) AS id,
    sent_at AS sent_time, received_at AS received_time, marked, name
FROM messages WHERE class <> 'delivered';

CREATE VIEW renamed AS
WITH translated AS (
    SELECT *, CASE route WHEN 'up' THEN 'bus/' || substr(source_name, 3)
        WHEN 'across' THEN 'HUB.' || replace(substr(source_name, 5), '/', '.')
        ELSE 'D.' || substr(source_name, 5) END AS now
    FROM archived WHERE leg = 'delivered'
)
SELECT route, target, source_name, name, fields, now, count(*) AS copies
FROM translated WHERE name <> now GROUP BY ALL;
