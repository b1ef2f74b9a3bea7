"""One Spark session for all tests of the run: one core, one partition, no web page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_JAVA = (
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",  # of Spark's own classes: a tenth of its start
    "-XX:MetaspaceSize=256m",
    "-XX:TieredStopAtLevel=1",  # the optimising compiler takes 40 % of the tests' processor time
)
_SMALL = {  # three rows need no compiled plan, no text of one and no second partition
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.maxPlanStringLength": "0",
    "spark.sql.ui.explainMode": "simple",
    "spark.driver.memory": "1g",
    "spark.executorEnv.AWS_ACCESS_KEY_ID": "test",  # of the bucket that a test starts
    "spark.executorEnv.AWS_SECRET_ACCESS_KEY": "test",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from gateway.night.reconcile.session import spark_session  # noqa: PLC0415  # only where it is used

    java = {"spark.driver.extraJavaOptions": " ".join(_JAVA)}
    with spark_session("local[1]", {**_SMALL, **java}) as session:
        yield session
