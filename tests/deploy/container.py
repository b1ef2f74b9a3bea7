"""Starts a container of an image that `ImageBuilder` built: read-only root, no capability."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.deploy.dockerfile import IN_NAMESPACES, MOUNT_ROOT, Image

GATEWAY_TIMEOUT = 60  # seconds until a gateway that still runs is killed
START_SCRIPT = f"""\
{MOUNT_ROOT}
root=$1
mount -t tmpfs tmpfs "$root/tmp"
touch "$root/etc/hosts"  # an engine writes it
mount --bind /etc/hosts "$root/etc/hosts"
mount --bind "$2" "$root/var/lib/gateway"
mount --bind "$3" "$root/etc/gateway"
mount -o remount,bind,ro "$root/etc/gateway"
mount -o remount,bind,ro "$root"
shift 3
exec chroot "$root" "$@"
"""


def run(
    image: Image,
    state: Path,
    settings: Path,
    arguments: Sequence[str],
    *,
    user: str | None = None,
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a container and return its output; `timeout` in seconds."""
    return subprocess.run(  # noqa: S603
        _container_command(image, state, settings, arguments, user or image.user),
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip


class Container:
    """A running container and the JSON log of its gateway."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    @property
    def gateway_pid(self) -> int:
        """The process id of the gateway: the child of the process that made the namespaces."""
        pid = self.process.pid
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(child)

    def wait_for_log(self, message: str, times: int = 1, **fields: object) -> None:
        """Read the log until `times` more lines have `message` and `fields`.

        Raises:
            AssertionError: the log ended before.
        """
        wanted = {"message": message, **fields}
        lines: list[dict[str, object]] = []
        assert self.process.stderr is not None
        for text in self.process.stderr:
            lines.append(json.loads(text))
            times -= wanted.items() <= lines[-1].items()
            if not times:
                return
        raise AssertionError(f"the log has too few lines {wanted}: {lines}")


@contextmanager
def started(image: Image, state: Path, settings: Path) -> Iterator[Container]:
    """Start the command of the image; `state` and `settings` are the two mounted folders."""
    arguments = (*image.entrypoint, *image.command)
    process = subprocess.Popen(  # noqa: S603
        _container_command(image, state, settings, arguments, image.user),
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        timer = threading.Timer(GATEWAY_TIMEOUT, process.kill)
        timer.start()
        try:
            yield Container(process)
        finally:
            timer.cancel()
            process.kill()


def _container_command(
    image: Image, state: Path, settings: Path, arguments: Sequence[str], user: str
) -> list[str]:
    user_id, _, group_id = user.partition(":")
    variables = [f"{name}={value}" for name, value in image.environment.items()]
    return [
        *IN_NAMESPACES, START_SCRIPT, "sh", str(image.root), str(state), str(settings),
        "env", "-i", f"--chdir={image.working_folder}", *variables,
        "setpriv", f"--reuid={user_id}", f"--regid={group_id}", "--clear-groups",
        "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "--pdeathsig=KILL",
        *arguments,
    ]  # fmt: skip
