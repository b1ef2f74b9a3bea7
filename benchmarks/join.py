"""A yardstick of the reconciliation: joins and classifies messages in one DuckDB query.

`python -m benchmarks.join ARCHIVE` prints the seconds and the copies of each class as JSON. It has
no order, no taps, no id sets, no details and no tables.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time

import duckdb

THREADS = 2
MEMORY = "6GB"  # above it, DuckDB writes to disk, as Spark does
MAX_LATENCY = 300  # seconds
QUERY = f"""
WITH rows AS (SELECT * FROM read_parquet(?, hive_partitioning = false)),
expected AS (
    SELECT gateway, route, id, unnest(targets) AS target, hash, received, true AS expected
    FROM rows WHERE leg = 'received'
),
outcomes AS (
    SELECT gateway, route, id, target,
        count(*) FILTER (leg = 'delivered') AS deliveries,
        count(*) FILTER (leg = 'dead') AS dead_letters,
        min(hash) FILTER (leg = 'delivered' AND outcome = 'accepted') AS lowest_hash,
        max(hash) FILTER (leg = 'delivered' AND outcome = 'accepted') AS highest_hash,
        min(time) FILTER (leg = 'delivered') AS first_time
    FROM rows WHERE leg IN ('delivered', 'dead') GROUP BY ALL
),
classes AS (
    SELECT CASE
        WHEN expected IS NULL THEN 'unexpected'
        WHEN deliveries > 0 AND (lowest_hash <> hash OR highest_hash <> hash) THEN 'altered'
        WHEN deliveries > 0 AND deliveries + dead_letters > 1 THEN 'duplicated'
        WHEN deliveries > 0 AND first_time - received > INTERVAL {MAX_LATENCY} SECOND
            THEN 'delivered late'
        WHEN deliveries > 0 THEN 'delivered'
        WHEN dead_letters > 0 THEN 'refused'
        ELSE 'missing'
    END AS class
    FROM expected FULL JOIN outcomes USING (gateway, route, id, target)
)
SELECT class, count(*) FROM classes GROUP BY class
"""  # noqa: S608  # a constant


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
        started = time.perf_counter()
        found = connection.execute(QUERY, [f"{sys.argv[1]}/date=*/*/*.parquet"]).fetchall()
        spent = time.perf_counter() - started
    print(json.dumps({"seconds": spent, "classes": dict(found)}))


if __name__ == "__main__":
    main()
