"""The nightly join in one DuckDB query: received against delivered, classed; a yardstick.

Run as `python -m benchmarks.join ARCHIVE`; it prints the seconds and the copies of each class as
JSON. Order, taps, digests, details and the tables of the job are not part of it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time

import duckdb

THREADS = 2
MEMORY = "6GB"  # past it DuckDB writes to disk, as Spark does
LATE = 300  # seconds
QUERY = f"""
WITH rows AS (SELECT * FROM read_parquet(?, hive_partitioning = false)),
owed AS (
    SELECT gateway, route, id, unnest(targets) AS target, hash, received, true AS owed
    FROM rows WHERE leg = 'received'
),
ends AS (
    SELECT gateway, route, id, target,
        count(*) FILTER (leg = 'delivered') AS deliveries,
        count(*) FILTER (leg = 'dead') AS deaths,
        min(hash) FILTER (leg = 'delivered' AND outcome = 'accepted') AS least,
        max(hash) FILTER (leg = 'delivered' AND outcome = 'accepted') AS most,
        min(time) FILTER (leg = 'delivered') AS first_time
    FROM rows WHERE leg IN ('delivered', 'dead') GROUP BY ALL
),
classes AS (
    SELECT CASE
        WHEN owed IS NULL THEN 'unexpected'
        WHEN deliveries > 0 AND (least <> hash OR most <> hash) THEN 'altered'
        WHEN deliveries > 0 AND deliveries + deaths > 1 THEN 'duplicated'
        WHEN deliveries > 0 AND first_time - received > INTERVAL {LATE} SECOND
            THEN 'delivered late'
        WHEN deliveries > 0 THEN 'delivered'
        WHEN deaths > 0 THEN 'refused'
        ELSE 'missing'
    END AS class
    FROM owed FULL JOIN ends USING (gateway, route, id, target)
)
SELECT class, count(*) FROM classes GROUP BY class
"""  # noqa: S608  # our own number


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        connection = duckdb.connect(
            config={
                "threads": THREADS,
                "memory_limit": MEMORY,
                "temp_directory": folder,
                "preserve_insertion_order": False,
            }
        )
        began = time.perf_counter()
        found = connection.execute(QUERY, [f"{sys.argv[1]}/date=*/*/*.parquet"]).fetchall()
        spent = time.perf_counter() - began
    print(json.dumps({"seconds": spent, "classes": dict(found)}))


if __name__ == "__main__":
    main()
