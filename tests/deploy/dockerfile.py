"""Builds the images of a Dockerfile in plain folders, on a machine without a Docker engine.

Each stage is a folder with a root file system, and RUN is a chroot in its own mount and process
namespaces. The instructions of the project's Dockerfile are supported; others are refused.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

RUN_TIMEOUT = 900  # seconds
HOST_VARIABLES = re.compile(r"PIP_(INDEX_URL|DEFAULT_TIMEOUT)|(https?|no)_proxy", re.IGNORECASE)
IN_NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c")
MOUNT_ROOT = """\
set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/run"
"""
RUN_SCRIPT = f"""\
{MOUNT_ROOT}
cat "$2" > "$1/run/authorities.pem"
cat /etc/resolv.conf > "$1/etc/resolv.conf"
exec /usr/sbin/chroot "$1" /bin/sh -c "$3"
"""


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction such as `USER 1:1`; `line` counts from 1."""

    line: int
    keyword: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: `FROM base AS name` and its instructions."""

    name: str
    base: str
    instructions: tuple[Instruction, ...] = ()


@dataclass(frozen=True, slots=True)
class Image:
    """A folder with a root file system, and the settings of its containers."""

    root: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    working_folder: str = "/"
    user: str = "0:0"
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def parse_instructions(text: str) -> Iterator[Instruction]:
    """Return the instructions, with continued lines joined and comments removed."""
    first_line, joined = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not (line.strip() or joined):
            continue
        first_line = first_line or number
        joined += line.removesuffix("\\")
        if not line.endswith("\\"):
            keyword, _, arguments = joined.strip().partition(" ")
            yield Instruction(first_line, keyword, arguments.strip())
            first_line, joined = 0, ""


def parse_stages(text: str) -> dict[str, Stage]:
    """Return the stages by name, in order; `${NAME}` in FROM is the default of its ARG."""
    defaults: dict[str, str] = {}
    stages: dict[str, Stage] = {}
    name = ""
    for instruction in parse_instructions(text):
        match instruction.keyword:
            case "ARG":
                key, _, value = instruction.arguments.partition("=")
                defaults[key] = value
            case "FROM":
                base, _, name = instruction.arguments.partition(" AS ")
                base = re.sub(r"\$\{(\w+)\}", lambda found: defaults[found[1]], base)
                stages[name] = Stage(name, base)
            case _:
                stage = stages[name]
                stages[name] = replace(stage, instructions=(*stage.instructions, instruction))
    return stages


class ImageBuilder:
    """Builds stages of a Dockerfile; `context` is the folder that COPY copies from.

    A base that is no stage is the root file system `base`. The images are made in `scratch`.
    Mutable: keeps the images that it built.
    """

    def __init__(self, text: str, context: Path, base: Path, scratch: Path) -> None:
        self._stages = parse_stages(text)
        self._context, self._base, self._scratch = context, base, scratch
        self._built: dict[str, Image] = {}

    def build(self, target: str) -> Image:
        """Return the image of the stage `target`; build it and its bases at the first call.

        Raises:
            ValueError: an instruction is not supported.
            RuntimeError: the command of a RUN failed.
        """
        if target not in self._stages:
            return Image(self._base)
        if target not in self._built:
            stage = self._stages[target]
            base = self.build(stage.base)
            image = replace(base, root=self._scratch / target)
            subprocess.run(  # noqa: S603
                ["cp", "-a", "--reflink=auto", base.root, image.root],  # noqa: S607
                check=True,
            )
            for instruction in stage.instructions:
                image = self._execute(instruction, image)
            self._built[target] = image
        return self._built[target]

    def _execute(self, instruction: Instruction, image: Image) -> Image:
        arguments = instruction.arguments
        match instruction.keyword:
            case "RUN":
                _run(instruction, image)
            case "COPY":
                self._copy(instruction, image)
            case "ENV":
                added = dict(pair.split("=", 1) for pair in shlex.split(arguments))
                image = replace(image, environment={**image.environment, **added})
            case "WORKDIR":
                image = replace(image, working_folder=arguments)
            case "USER":
                image = replace(image, user=arguments)
            case "ENTRYPOINT":
                image = replace(image, entrypoint=tuple(json.loads(arguments)))
            case "CMD":
                image = replace(image, command=tuple(json.loads(arguments)))
            case _:
                raise ValueError(f"line {instruction.line}: {instruction.keyword} is not supported")
        return image

    def _copy(self, instruction: Instruction, image: Image) -> None:
        """Copy files into a folder that ends with `/`, and the content of a folder."""
        *sources, destination = instruction.arguments.split()
        origin = self._context
        if sources[0].startswith("--from="):
            origin = self.build(sources.pop(0).removeprefix("--from=")).root
        if sources[0].startswith("--"):
            raise ValueError(f"line {instruction.line}: COPY {sources[0]} is not supported")
        target = image.root / destination.lstrip("/")
        for source in (origin / each.lstrip("/") for each in sources):
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=ignored)
            else:
                file = target / source.name if destination.endswith("/") else target
                file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, file)


def _run(instruction: Instruction, image: Image) -> None:
    """Run a shell command in the image, with the network and the authorities of this machine."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
    environment.update(image.environment)
    environment.update(
        (name, value) for name, value in os.environ.items() if HOST_VARIABLES.fullmatch(name)
    )
    authorities = os.environ.get("PIP_CERT", "/dev/null")
    if authorities != "/dev/null":
        environment["PIP_CERT"] = "/run/authorities.pem"
    done = subprocess.run(  # noqa: S603
        [*IN_NAMESPACES, RUN_SCRIPT, "sh", image.root, authorities, instruction.arguments],
        env=environment, capture_output=True, text=True, timeout=RUN_TIMEOUT, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(
            f"line {instruction.line}: RUN ended with {done.returncode}: {done.stderr}"
        )
