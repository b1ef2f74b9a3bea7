"""Runs of Spin: every run of a model is searched, and each rule counts how often it was taken."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

TIMEOUT: Final = 1200  # seconds for one program; at most a minute of a quiet core
SPIN: Final = shutil.which("spin")
COMPILER: Final = shutil.which("gcc")

needs_spin: Final = pytest.mark.skipif(
    not (SPIN and COMPILER), reason="no spin or no gcc; deploy/system-packages.sh installs them"
)


@dataclass(frozen=True)
class Model:
    """A model of `docs/models/`, and the folder for what Spin makes of it."""

    path: Path
    folder: Path

    def search(self, options: str, *arguments: str, defines: str = "-DSAFETY -DNOCLAIM") -> str:
        """Return the output of the search; fail when it did not search everything.

        `options` are macros of the model, `defines` those of the search, `arguments` its own.
        """
        flags = [f"-D{each}" for each in options.split()]
        self._run(str(SPIN), *flags, "-a", str(self.path))
        return self._compiled(*arguments, defines=defines)

    def lines_taken(self, options: str) -> set[int]:
        """Return the lines with a step that a run takes; Spin omits steps that none takes."""
        flags = [f"-D{each}" for each in options.split()]
        self._run(str(SPIN), *flags, "-o3", "-a", str(self.path))  # no two steps are merged
        output = self._compiled(defines="-DSAFETY -DNOCLAIM -DPEG")
        return {int(line) for line in re.findall(r"\d\ttrans +\d+ \S+:(\d+)", output)}

    def lines_of_rules(self) -> set[int]:
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return {number for number, line in enumerate(lines, 1) if ":: d_step" in line}

    def _compiled(self, *arguments: str, defines: str) -> str:
        memory = "-DNOREDUCE", "-DMEMLIM=3000"
        self._run(str(COMPILER), "-O2", "-w", *defines.split(), *memory, "-o", "pan", "pan.c")
        output = self._run("./pan", "-m100000", "-w22", *arguments)
        assert "max search depth too small" not in output
        assert "memory limit" not in output
        return output

    def _run(self, *command: str) -> str:
        done = subprocess.run(  # noqa: S603  # fixed programs, and the model of this project
            command, cwd=self.folder, capture_output=True, text=True, timeout=TIMEOUT, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def rules_of(path: Path) -> list[str]:
    """Return the names of the rules that `BREAK` breaks."""
    flags = path.read_text(encoding="utf-8").partition("#define BREAK 0\n#endif\n")[2]
    rules = flags.partition("#define kept(")[0]
    return re.findall(r"^#define ([A-Z_]+) \d+\b", rules, re.MULTILINE)
