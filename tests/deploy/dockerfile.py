"""Carries out a Dockerfile's steps in plain folders, for machines without a Docker engine.

It knows the instructions our Dockerfile uses and refuses all others, so that nothing is skipped.
A stage is a folder; a RUN is a chroot in mount and process namespaces of its own; nothing is
cached. What differs from an engine: no layers, and the network is that of the machine.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

PASSED = re.compile(r"PIP_(INDEX_URL|DEFAULT_TIMEOUT)|(https?|no)_proxy", re.IGNORECASE)
MOUNTS = """\
set -e
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount -t tmpfs tmpfs "$1/run"
"""


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction; `line` counts from 1."""

    line: int
    word: str
    text: str


@dataclass(frozen=True, slots=True)
class Stage:
    """`FROM base AS name` and what follows."""

    name: str
    base: str
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Image:
    """A folder with a system in it, and how a container of it starts."""

    root: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "0:0"
    entry: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def steps(text: str) -> Iterator[Step]:
    """The instructions, with continued lines joined and comments gone."""
    begun, joined = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not (line.strip() or joined):
            continue
        begun = begun or number
        joined += line.removesuffix("\\")
        if not line.endswith("\\"):
            word, _, rest = joined.strip().partition(" ")
            yield Step(begun, word, rest.strip())
            begun, joined = 0, ""


def stages(text: str) -> dict[str, Stage]:
    """The stages by name, in their order; `${NAME}` in FROM is the default of its ARG."""
    arguments: dict[str, str] = {}
    found: dict[str, Stage] = {}
    name = ""
    for step in steps(text):
        if step.word == "ARG":
            key, _, value = step.text.partition("=")
            arguments[key] = value
        elif step.word == "FROM":
            base, _, name = step.text.partition(" AS ")
            base = re.sub(r"\$\{(\w+)\}", lambda match: arguments[match[1]], base)
            found[name] = Stage(name, base, ())
        else:
            found[name] = replace(found[name], steps=(*found[name].steps, step))
    return found


class Builder:
    """Makes the images that a target needs; mutable: it keeps those it has made."""

    def __init__(self, text: str, context: Path, base: Path, scratch: Path) -> None:
        self._stages = stages(text)
        self._context, self._base, self._scratch = context, base, scratch
        self._made: dict[str, Image] = {}

    def build(self, target: str) -> Image:
        if target not in self._stages:
            return Image(self._base)
        if target not in self._made:
            stage = self._stages[target]
            image = replace(self.build(stage.base), root=self._scratch / target)
            _copy(self.build(stage.base).root, image.root)
            for step in stage.steps:
                image = self._done(step, image)
            self._made[target] = image
        return self._made[target]

    def _done(self, step: Step, image: Image) -> Image:
        match step.word:
            case "RUN":
                _run(image, step)
            case "COPY":
                self._copied(step, image.root)
            case "ENV":
                pairs = dict(word.split("=", 1) for word in shlex.split(step.text))
                return replace(image, environment={**image.environment, **pairs})
            case "WORKDIR":
                return replace(image, folder=step.text)
            case "USER":
                return replace(image, user=step.text)
            case "ENTRYPOINT":
                return replace(image, entry=tuple(json.loads(step.text)))
            case "CMD":
                return replace(image, command=tuple(json.loads(step.text)))
            case _:
                raise ValueError(f"line {step.line}: {step.word} is not known here")
        return image

    def _copied(self, step: Step, root: Path) -> None:
        words = step.text.split()
        options = [word for word in words if word.startswith("--")]
        *sources, end = words[len(options) :]
        origin = self._context
        for option in options:
            if not option.startswith("--from="):
                raise ValueError(f"line {step.line}: COPY {option} is not known here")
            origin = self.build(option.removeprefix("--from=")).root
        for source in sources:
            _copy_into(origin / source.lstrip("/"), root / end.lstrip("/"), whole=end.endswith("/"))


def _copy(source: Path, end: Path) -> None:
    subprocess.run(  # noqa: S603
        ["cp", "-a", "--reflink=auto", source, end],  # noqa: S607
        check=True,
    )


def _copy_into(source: Path, end: Path, *, whole: bool) -> None:
    """As COPY does: the content of a folder, or a file into a folder."""
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, end, symlinks=True, dirs_exist_ok=True, ignore=ignored)
    else:
        target = end / source.name if whole else end
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def _run(image: Image, step: Step) -> None:
    passed = {key: value for key, value in os.environ.items() if PASSED.fullmatch(key)}
    script = MOUNTS + 'cat "$2" > "$1/run/authorities.pem"\n'
    script += (
        'cat /etc/resolv.conf > "$1/etc/resolv.conf"\nexec /usr/sbin/chroot "$1" /bin/sh -c "$3"'
    )
    authorities = os.environ.get("PIP_CERT", "/dev/null")
    if authorities != "/dev/null":
        passed["PIP_CERT"] = "/run/authorities.pem"
    done = subprocess.run(  # noqa: S603
        [*UNSHARE, script, "sh", image.root, authorities, step.text],
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
        | {**image.environment, **passed},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"line {step.line}: RUN ended with {done.returncode}: {done.stderr}")


UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c")
START = """\
mount -t tmpfs tmpfs "$1/tmp"
touch "$1/etc/hosts"  # which an engine writes
mount --bind /etc/hosts "$1/etc/hosts"
mount --bind "$2" "$1/var/lib/gateway"
mount --bind "$3" "$1/etc/gateway"
mount -o remount,bind,ro "$1/etc/gateway"
mount -o remount,bind,ro "$1"
shift 3
"""


def command(
    image: Image, state: Path, settings: Path, arguments: Sequence[str], user: str | None = None
) -> list[str]:
    """What starts a container: read-only root, no capability, `state` writable, /tmp in memory."""
    user_id, _, group = (user or image.user).partition(":")
    drop = [
        "setpriv", f"--reuid={user_id}", f"--regid={group}", "--clear-groups", "--no-new-privs",
        "--bounding-set=-all", "--inh-caps=-all", "--pdeathsig=KILL",
    ]  # fmt: skip
    variables = [f"{key}={value}" for key, value in image.environment.items()]
    script = f'{MOUNTS}root=$1\n{START}exec chroot "$root" "$@"'
    return [
        *UNSHARE, script, "sh", str(image.root), str(state), str(settings),
        "env", "-i", f"--chdir={image.folder}", *variables, *drop, *arguments,
    ]  # fmt: skip
