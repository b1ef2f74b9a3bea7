-- The tables `hops` and `renamed` of the chain plant -> bus -> core -> hub -> office, by
-- docs/reconciliation.md, from the rows `archived`. Every message has its trace id.

CREATE VIEW hops AS
WITH ends(gateway, route, target, broker, receiver, receiver_route) AS (
    VALUES ('plant', 'up', 'bus', 'bus', 'core', 'across'),
        ('core', 'across', 'hub', 'hub', 'office', 'down')
), receipts AS (
    SELECT gateway AS receiver, trace, name, hash,
        count(*) FILTER (leg = 'received') AS received,
        count(*) FILTER (leg = 'cut') AS known,
        min(epoch_us(time)) AS at
    FROM archived WHERE leg IN ('received', 'cut') GROUP BY ALL
), sent AS (
    SELECT gateway, route, target, trace, name, hash, count(*) AS sent,
        min(epoch_us(time)) AS at
    FROM archived WHERE leg = 'delivered' GROUP BY ALL
), judged AS (
    SELECT ends.*, sent.sent, coalesce(r.known, 0) AS known, CASE
        WHEN r.received IS NULL THEN 'missing'
        WHEN r.received > sent.sent THEN 'duplicated'
        WHEN r.at - sent.at > 300_000_000 THEN 'delivered late'
        ELSE 'delivered'
    END AS class, (
        SELECT count(*) FROM receipts o
        WHERE o.receiver = ends.receiver AND o.trace = sent.trace AND o.name = sent.name
            AND o.hash <> sent.hash
    ) AS unproven
    FROM sent JOIN ends USING (gateway, route, target)
    LEFT JOIN receipts r USING (receiver, trace, name, hash)
)
SELECT broker, gateway, route, target, receiver, receiver_route, sum(sent) AS expected,
    count(*) FILTER (class = 'missing') AS missing,
    count(*) FILTER (class = 'duplicated') AS duplicated,
    count(*) FILTER (class = 'delivered late') AS delivered_late,
    count(*) FILTER (class = 'delivered') AS delivered,
    sum(unproven) AS unproven, sum(known) AS recognised
FROM judged GROUP BY ALL;

CREATE VIEW renamed AS
WITH translated AS (
    SELECT *, CASE route WHEN 'up' THEN 'bus/' || substr(source_name, 3)
        WHEN 'across' THEN 'HUB.' || replace(substr(source_name, 5), '/', '.')
        ELSE 'D.' || substr(source_name, 5) END AS now
    FROM archived WHERE leg = 'delivered'
)
SELECT route, target, source_name, name, fields, now, count(*) AS copies
FROM translated WHERE name <> now GROUP BY ALL;
