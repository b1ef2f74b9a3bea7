"""The process of the `gateway` command, also as `python -m gateway`."""

import signal
import sys

_HANDLED = ("SIGHUP", "SIGUSR1", "SIGUSR2")  # by `gateway run`, as soon as its modules are loaded


def main() -> int:
    """Run the command of this process's arguments and return its exit code.

    A signal that comes while the modules load is ignored: the configuration is read after that.
    """
    if sys.argv[1:2] == ["run"]:
        for name in _HANDLED:
            if hasattr(signal, name):  # Windows has none of them
                signal.signal(getattr(signal, name), signal.SIG_IGN)
    from gateway.cli import main as run_command  # noqa: PLC0415  # after the signals

    return run_command()


if __name__ == "__main__":
    sys.exit(main())
