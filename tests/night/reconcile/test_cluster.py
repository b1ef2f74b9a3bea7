"""A reconciliation on a standalone cluster: a master and two workers of one core."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gateway.archive.layout import reconciled_folder
from gateway.archive.location import ArchiveLocation, parse_location
from gateway.archive.name_store import NameFile
from gateway.archive.storage import open_storage
from gateway.translate.shorten import digest_of
from gateway.trial.brokers.listening import free_port
from tests.archive.bucket import Bucket
from tests.archive.samples import DAY
from tests.night.reconcile.cluster import (
    BASE_PYTHON,
    QUICK_JAVA,
    Cluster,
    Driver,
    cluster,
    eventually,
    kill_tree,
    python_without_gateway,
)
from tests.night.reconcile.night import FEW_HOURS, LATE, Copy, Night, model, night

# Five drivers beside three processes of Spark; with other work on its cores, a machine needs long.
pytestmark = [pytest.mark.spark, pytest.mark.nightly, pytest.mark.timeout(2_400)]

ROOT = Path(__file__).parents[3]
NIGHT = ["--date", DAY.isoformat(), "--late", str(LATE), "--spooled-days", "3650"]
STEPS = ("checking the files", "evaluating the id sets", "joining the messages")


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python of executors that get the gateway's code only from the driver."""
    found = python_without_gateway(tmp_path_factory.mktemp("python"))
    assert runs(found, "import numpy, pyarrow, pyspark")
    assert not runs(found, "import gateway")
    return str(found)


def runs(python: Path, code: str) -> bool:
    done = subprocess.run([python, "-c", code], capture_output=True, check=False, cwd="/")  # noqa: S603
    return done.returncode == 0


def gateway(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in another process, because this one may have a Spark session."""
    return subprocess.run(  # noqa: S603  # our own command
        [sys.executable, "-m", "gateway", *arguments],
        env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": python},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )


@contextmanager
def submitted(
    master: str, python: str, options: Sequence[str], *arguments: str
) -> Iterator[subprocess.Popen[str]]:
    """Run the command by the submit script, which makes one of its two streams."""
    own = {"MASTER": master, "PYTHON": sys.executable, "PYSPARK_PYTHON": python}
    own |= {"JDK_JAVA_OPTIONS": QUICK_JAVA}
    given = ["--conf", "spark.executor.memory=512m", *options, "--", *arguments]
    with subprocess.Popen(  # noqa: S603  # our own script
        [str(ROOT / "deploy" / "spark-submit.sh"), *given],
        env={**os.environ, **own, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=ROOT,
    ) as child:
        try:
            yield child
        finally:
            if child.poll() is None:  # the test has failed
                kill_tree(child.pid)


def lines_to(text: str, lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines up to the first one with `text`."""
    for line in lines:
        yield line
        if text in line:
            return


def written(made: Night, root: Path) -> Path:
    made.write(root)
    names = NameFile(root, "east")
    names.write({digest_of(("a", "b")): ("a", "b")})
    names.close()
    return root


def classes(location: ArchiveLocation, folder: Path) -> dict[Copy, str]:
    """Return the class of every copy that the night listed as an exception."""
    storage, found = open_storage(location), {}
    for path, _ in storage.files(folder / "exceptions"):
        with storage.open(path) as file:
            for row in pq.read_table(file).to_pylist():
                copy = row["gateway"], row["route"], row["target"], row["id"]
                found[copy] = row["class"]
    return found


def test_a_night_says_that_it_waits_for_workers(
    tmp_path: Path, spark_cluster: Cluster, python: str
) -> None:
    """The first test of the cluster: it has no workers yet."""
    made = night(11, hours=FEW_HOURS)
    root = str(written(made, tmp_path / "archive"))

    with submitted(spark_cluster.url, python, [], "reconcile", root, *NIGHT) as child:
        assert child.stdout is not None
        *_, waits = lines_to("no executor has taken a task", child.stdout)
        spark_cluster.grow(2)
        rest, _ = child.communicate()

    assert waits.rstrip().endswith(f"and their memory, at {spark_cluster.url} (0%)")
    assert child.returncode == 1, rest


def test_a_night_in_a_bucket_is_reconciled_exactly(
    tmp_path: Path, spark_cluster: Cluster, python: str, bucket: Bucket
) -> None:
    """Executors read the bucket through the storage of the archive: Spark has no driver for S3."""
    spark_cluster.grow(2)
    made = night(11, hours=FEW_HOURS)
    root = written(made, tmp_path / "archive")
    bucket.start()
    location = parse_location(bucket.url)
    storage = open_storage(location)
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        storage.put(path.relative_to(root), path.read_bytes())

    master = ["--master", spark_cluster.url]
    done = gateway(python, "reconcile", bucket.url, *NIGHT, *master, "--sets")

    assert done.returncode == 1, done.stderr
    assert classes(location, reconciled_folder(Path(), DAY)) == model(made)


def test_a_compacted_night_is_reconciled_exactly_by_spark_submit(
    tmp_path: Path, spark_cluster: Cluster, python: str
) -> None:
    spark_cluster.grow(2)
    made = night(11, hours=FEW_HOURS)
    root = str(written(made, tmp_path / "archive"))
    master = spark_cluster.url

    with submitted(master, python, [], "archive", "compact", root, *NIGHT[:2]) as compact:
        compacted, _ = compact.communicate()
    with submitted(master, python, [], "reconcile", root, *NIGHT) as judge:
        judged, _ = judge.communicate()

    assert compact.returncode == 0, compacted
    assert "1 shortened names, 0 of them sent to 0 targets" in compacted
    assert judge.returncode == 1, judged
    assert f"starting Spark on {master}" in judged
    assert classes(ArchiveLocation(Path(root)), reconciled_folder(Path(), DAY)) == model(made)


def test_workers_killed_in_the_middle_of_a_night_cost_no_verdict(
    tmp_path: Path, spark_cluster: Cluster, python: str
) -> None:
    """In each step the oldest worker freezes, and is killed when its tasks are all that is left.

    Another one takes its place before, so that the next step has two again.
    """
    spark_cluster.grow(2)
    made = night(11, hours=FEW_HOURS)
    root = str(written(made, tmp_path / "archive"))
    driver = Driver(free_port())
    options = ["--conf", "spark.ui.enabled=true", "--conf", f"spark.ui.port={driver.page}"]
    options += ["--conf", "spark.network.timeout=1h"]  # frozen is not lost

    night_long = ["reconcile", root, *NIGHT, "--sets"]
    with submitted(spark_cluster.url, python, options, *night_long) as child:
        assert child.stdout is not None
        said: list[str] = []
        for step in STEPS:
            said += lines_to(step, child.stdout)
            worker = spark_cluster.workers[0]
            eventually(partial(driver.has_executor, worker), f"an executor before {step}")
            assert "spark.driver.bindAddress" not in driver.settings()  # also others reach it
            worker.freeze_executors()
            eventually(partial(driver.waits_for, worker), f"a lasting task after {step}")
            spark_cluster.grow(3)  # meanwhile the job waits
            newest = spark_cluster.workers[-1]
            eventually(partial(driver.has_executor, newest), f"another executor after {step}")
            spark_cluster.kill(worker)
        said += child.stdout
        child.wait()

    assert child.returncode == 1, "".join(said)
    lost = [line for line in said if "Lost executor" in line and "worker lost" in line]
    assert len(lost) == len(STEPS), "".join(said)
    assert classes(ArchiveLocation(Path(root)), reconciled_folder(Path(), DAY)) == model(made)


def test_executors_whose_python_lacks_the_packages_are_named(
    tmp_path: Path, spark_cluster: Cluster
) -> None:
    if runs(BASE_PYTHON, "import pyarrow"):
        pytest.skip("the Python of the system has PyArrow")
    spark_cluster.grow(2)
    night(11, hours=FEW_HOURS).write(tmp_path)

    master = ["--master", spark_cluster.url]
    done = gateway(str(BASE_PYTHON), "reconcile", str(tmp_path), *NIGHT, *master)

    assert done.returncode == 2
    assert "the Python of the executors has no 'pyarrow'; install" in done.stderr
    assert not (tmp_path / reconciled_folder(Path(), DAY) / "summary.json").exists()
