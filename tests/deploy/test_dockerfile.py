"""Instructions of a Dockerfile as the tests read them, and the rules of deploy/Dockerfile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.deploy.dockerfile import ImageBuilder, Instruction, parse_instructions, parse_stages

DOCKERFILE = (Path(__file__).parents[2] / "deploy" / "Dockerfile").read_text()


def test_a_continued_line_belongs_to_its_instruction() -> None:
    text = "RUN a \\\n  && b"

    assert list(parse_instructions(text)) == [Instruction(1, "RUN", "a   && b")]


def test_comments_are_removed_before_and_inside_an_instruction() -> None:
    text = "# before\nRUN a \\\n# inside\n b"

    assert list(parse_instructions(text)) == [Instruction(2, "RUN", "a  b")]


def test_empty_lines_separate_instructions_and_count_as_lines() -> None:
    text = "\nUSER 1:1\n\nCMD []"

    assert list(parse_instructions(text)) == [
        Instruction(2, "USER", "1:1"),
        Instruction(4, "CMD", "[]"),
    ]


def test_an_unknown_instruction_is_refused(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    builder = ImageBuilder("FROM x AS a\nVOLUME /data", tmp_path, base, tmp_path)

    with pytest.raises(ValueError, match="line 2: VOLUME is not supported"):
        builder.build("a")


def test_an_image_has_the_files_and_the_settings_of_its_base(tmp_path: Path) -> None:
    text = """\
FROM debian AS base
ENV COLOUR=red SIZE=1
COPY notes /notes/
FROM base AS final
ENV SIZE=2
COPY --from=base /notes /copied
USER 1:1
CMD ["run"]
"""
    base, context, scratch = (tmp_path / name for name in ("debian", "context", "scratch"))
    for folder in (base, context, scratch):
        folder.mkdir()
    (context / "notes").write_text("hello")

    image = ImageBuilder(text, context, base, scratch).build("final")

    assert (image.root / "notes" / "notes").read_text() == "hello"
    assert (image.root / "copied" / "notes").read_text() == "hello"
    assert image.environment == {"COLOUR": "red", "SIZE": "2"}
    assert (image.user, image.command) == ("1:1", ("run",))


@pytest.mark.parametrize("target", ["slim", "jvm", "spark"])
def test_a_final_image_copies_two_folders_and_has_an_unprivileged_user(target: str) -> None:
    *layers, last = parse_stages(DOCKERFILE)[target].instructions

    assert [(layer.keyword, layer.arguments) for layer in layers] == [
        ("COPY", f"--from={target}-packages /opt/gateway /opt/gateway"),
        ("COPY", "--from=wheel /app /opt/gateway"),
    ]
    assert (last.keyword, last.arguments) == ("USER", "10001:10001")


def test_every_package_is_installed_with_its_hash() -> None:
    run_commands = [
        command
        for instruction in parse_instructions(DOCKERFILE)
        if instruction.keyword == "RUN"
        for command in instruction.arguments.split("&&")
    ]
    pip_commands = [
        command
        for command in run_commands
        if "/pip" in command and (" install" in command or " wheel" in command)
    ]

    assert len(pip_commands) == 7
    for command in pip_commands:
        with_hashes = "--require-hashes" in command
        from_local_files = "--no-index" in command or "/source" in command
        assert with_hashes or from_local_files, command
