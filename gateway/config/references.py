"""Values that references of a configuration stand for, and findings without these values."""

from __future__ import annotations

import re
from typing import Final

from gateway.errors import ConfigError, FindingExample

MIN_LENGTH: Final = 4  # characters; a shorter value is replaced only where it stands alone
MIN_WORD: Final = 8  # characters of a word that is replaced without the value around it
_QUOTED: Final = re.compile(r"(?<=')(?:[^'\\]|\\.)+(?=')|(?<=\")(?:[^\"\\]|\\.)+(?=\")")
_WORD: Final = re.compile(rf"\w{{{MIN_WORD},}}")
_MARK: Final = re.compile("\0([0-9]+)\0")  # the place of a value, until all are found


class References:
    """Replaces each value of a reference by the text of the file, such as `${env:NAME}`.

    A finding is printed, logged and sent to the machine that checks a file. The value may be a
    secret at any key.
    Mutable: the readers of the files add to it.
    """

    def __init__(self, *, secret: bool = True) -> None:
        self._secret = secret  # also parts of values are replaced; placeholders are no secrets
        self._written: list[str] = []  # texts of the file; a mark has the position of one
        self._values: dict[str, int] = {}  # position, by the value and by its `repr`
        self._words: dict[str, int] = {}  # position, by each long word of a value
        self._paths: dict[str, str] = {}  # text of the file, by the path that it stands for
        self._pattern: re.Pattern[str] | None = None

    def add_path(self, written: str, path: str) -> None:
        """Note that a reference in `written` led to the file at `path`."""
        self._paths[path] = written

    def add(self, written: str, value: str) -> None:
        """Note that `written` in a file stands for `value`."""
        if not value.strip() or value in self._values:
            return
        position = len(self._written)
        self._written.append(written)
        for form in (value, repr(value)[1:-1]):
            self._values.setdefault(form, position)
        for word in _WORD.findall(value) if self._secret else ():
            self._words.setdefault(word, position)
        self._pattern = None

    def hide(self, text: str) -> str:
        """Return `text` with the text of the file in place of every value."""
        if not self._values:
            return text
        if self._pattern is None:
            ordered = sorted(self._values, key=len, reverse=True)  # one may contain another
            self._pattern = re.compile("|".join(map(_whole, ordered)))
        text = text.replace("\0", "\\0")
        if self._secret:
            text = _QUOTED.sub(lambda found: self._part(found[0]), text)
        text = self._pattern.sub(lambda found: _mark(self._values[found[0]]), text)
        text = _WORD.sub(lambda found: self._word(found[0]), text)
        return _MARK.sub(lambda found: self._written[int(found[1])], text)

    def hide_in(self, finding: ConfigError) -> ConfigError:
        """Return the finding without values in its texts; its location is the same."""
        examples = tuple(
            FindingExample(self.hide(each.name), each.endpoint, each.system)
            for each in finding.examples
        )
        reason, hint = self.hide(finding.reason), self.hide(finding.hint)
        path = self._paths.get(finding.path, finding.path)
        location = (path, finding.line, finding.column)
        return ConfigError(*location, finding.rule, reason, hint, finding.severity, examples)

    def _part(self, content: str) -> str:
        """Return a mark for the part of a value that an error quotes; other content as it is."""
        if len(content) >= MIN_LENGTH:
            for value, position in self._values.items():
                if content in value:
                    return _mark(position)
        return content

    def _word(self, word: str) -> str:
        position = self._words.get(word)
        return word if position is None else _mark(position)


def _mark(position: int) -> str:
    return f"\0{position}\0"


def _whole(value: str) -> str:
    pattern = re.escape(value)
    return pattern if len(value) >= MIN_LENGTH else rf"(?<!\w){pattern}(?!\w)"
