"""The commands of the documents that need Spark, or the result of a command that does."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.docs_groups import group, of
from tests.docs_world import make_world, run_command, stand_in
from tests.printed_commands import Command

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


@pytest.mark.nightly
def test_the_commands_run_one_after_another(
    spark: SparkSession,  # noqa: ARG001  # the session is running
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One message of the archive is missing, so its reconciliation has exit status 1."""
    make_world(tmp_path)
    commands = sorted(group("spark"), key=lambda each: "gateway reconcile " not in each.text)
    absolute = {"records": str(tmp_path / "records")}  # Java began in another folder
    statuses = {
        each.text: run_command(tmp_path, stand_in(each.text, absolute)) for each in commands
    }

    reconciled = {text for text in statuses if text.startswith("gateway reconcile ")}
    assert statuses == {text: int(text in reconciled) for text in statuses}, capsys.readouterr()
    assert "1 arrived, 0 did not" in capsys.readouterr().out


@pytest.mark.timeout(900)
@pytest.mark.nightly  # starts a Java process
@of("submitted")
def test_a_submitted_command_ends_with_its_own_exit_status(
    command: Command, tmp_path: Path
) -> None:
    make_world(tmp_path)

    variables = {"PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    status = run_command(tmp_path, stand_in(command.text, {}), variables)

    assert status == int(" reconcile " in command.text)
