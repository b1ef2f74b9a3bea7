from __future__ import annotations

from pathlib import Path

import pytest

from gateway.archive.location import ArchiveLocation
from gateway.config.load import load
from gateway.errors import ConfigErrors
from gateway.runtime.archive_setup import archive_location, archive_options

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
    ("archive", "location", "bound", "keep"),
    [
        pytest.param("{path: /here}", ArchiveLocation(Path("/here")), None, None, id="folder"),
        pytest.param(
            "{path: /here, keep_days: 9}", ArchiveLocation(Path("/here")), None, 9, id="kept"
        ),
        pytest.param(
            "{path: 's3://b/p?region=r', buffer: /buf, buffer_bytes: 70000}",
            ArchiveLocation(Path("/buf"), "s3://b/p?region=r"), 70_000, None, id="elsewhere",
        ),
    ],
)  # fmt: skip
def test_an_archive_section_gives_location_and_options(
    tmp_path: Path, archive: str, location: ArchiveLocation, bound: int | None, keep: int | None
) -> None:
    configuration = load(written(tmp_path, archive))

    assert configuration.archive is not None
    assert archive_location(configuration.archive) == location
    options = archive_options(configuration.archive)
    assert (options.buffer_bytes, options.keep_days) == (bound, keep)
    (route,) = configuration.routes
    assert (route.archive_payload_bytes, route.archive_redact) == (10, ("card", "auth*"))


@pytest.mark.parametrize(
    ("archive", "text"),
    [
        pytest.param(
            "{path: 'ftp://x/y'}", "11:17: archive: ftp:// is no archive location", id="kind"
        ),
        pytest.param(
            "{path: 's3://k:s@b/p'}",
            "11:17: archive: s3://b: the URL contains a secret",
            id="secret",
        ),
        pytest.param("{path: x, keep_days: 0}", "11:31: 0 is outside 1..", id="no-days"),
    ],
)
def test_a_wrong_archive_section_is_a_finding_with_its_position(
    tmp_path: Path, archive: str, text: str
) -> None:
    with pytest.raises(ConfigErrors) as caught:
        load(written(tmp_path, archive))

    assert text in str(caught.value)
