from __future__ import annotations

from pathlib import Path

import pytest

from gateway.archive.location import Place
from gateway.config.load import load
from gateway.errors import ConfigErrors
from gateway.runtime.wiring import options_of, place_of

CONFIG = """
endpoints:
  plant: {kind: memory, dialect: mqtt}
routes:
  all:
    from: {endpoint: plant, pattern: "a/#"}
    to: {endpoint: plant, template: "b/c"}
    archive_payload: true
    archive_payload_bytes: 10
    archive_redact: [card, "auth*"]
archive: """


def written(folder: Path, archive: str) -> Path:
    path = folder / "gateway.yaml"
    path.write_text(CONFIG + archive + "\n")
    return path


@pytest.mark.parametrize(
    ("archive", "place", "bound", "keep"),
    [
        pytest.param("{path: here}", Place(Path("here")), None, None, id="folder"),
        pytest.param("{path: here, keep_days: 9}", Place(Path("here")), None, 9, id="kept"),
        pytest.param(
            "{path: 's3://b/p?region=r', buffer: buf, buffer_bytes: 70000}",
            Place(Path("buf"), "s3://b/p?region=r"), 70_000, None, id="elsewhere",
        ),
    ],
)  # fmt: skip
def test_an_archive_section_says_where_and_how(
    tmp_path: Path, archive: str, place: Place, bound: int | None, keep: int | None
) -> None:
    configuration = load(written(tmp_path, archive))

    assert configuration.archive is not None
    assert place_of(configuration.archive) == place
    options = options_of(configuration.archive)
    assert (options.buffer_bytes, options.keep_days) == (bound, keep)
    (route,) = configuration.routes
    assert (route.archive_payload_bytes, route.archive_redact) == (10, ("card", "auth*"))


@pytest.mark.parametrize(
    ("archive", "said"),
    [
        pytest.param("{path: 'ftp://x/y'}", "11:17: archive: ftp:// is no place", id="kind"),
        pytest.param("{path: 's3://k:s@b/p'}", "11:17: archive: s3://b: a secret", id="secret"),
        pytest.param("{path: x, keep_days: 0}", "11:31: 0 is outside 1..", id="no-days"),
    ],
)
def test_a_wrong_one_is_a_finding_at_its_place(tmp_path: Path, archive: str, said: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load(written(tmp_path, archive))

    assert said in str(caught.value)
