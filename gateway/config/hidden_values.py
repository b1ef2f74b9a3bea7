"""Values that references of a configuration stand for, and findings without these values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from gateway.config.nodes import KeyPath, SourceLocation
from gateway.errors import ConfigError

MIN_LENGTH: Final = 4  # characters; a shorter value is replaced only where it stands alone
MIN_WORD: Final = 8  # characters of a word that is replaced without the value around it
_QUOTED: Final = re.compile(r"(?<=')(?:[^'\\]|\\.)+(?=')|(?<=\")(?:[^\"\\]|\\.)+(?=\")")
_WORD: Final = re.compile(rf"\w{{{MIN_WORD},}}")
_NAMES: Final = (("routes",), ("tests",), ("defaults",))  # sections with patterns and names
_NAMES_OF_ENDPOINT: Final = (("allow",), ("limits",))
_MARK: Final = re.compile("\0([0-9]+)\0")  # the place of a value, until all are found


class HiddenValues:
    """Replaces each value of a reference by the text of the file, such as `${env:NAME}`.

    A finding is printed, logged and sent to the machine that checks a file. The value may be a
    secret at any key. It is looked for only where the text of its key can be: in texts about the
    same section, and a declared secret in texts about its own key, so that no name that happens to
    contain it is changed.
    Mutable: the readers of the files add to it, and later those of the secrets that change.
    """

    def __init__(self, *, secret: bool = True) -> None:
        self._secret = secret  # also parts of values are replaced; placeholders are not secrets
        self._added: dict[tuple[str, str, KeyPath], None] = {}  # written, value, place
        self._paths: dict[str, str] = {}  # text of the file, by the path that it stands for
        self._replacements: dict[KeyPath, _Replacements] = {}  # by the place of a text
        self._later: dict[tuple[str, KeyPath], str] = {}  # the last value of a secret that changed
        self.learned: Callable[[str], None] = lambda _value: None  # called for each later value

    def add_path(self, written: str, path: str) -> None:
        """Note that a reference in `written` led to the file at `path`."""
        self._paths[path] = written

    def add(self, written: str, value: str, at: KeyPath, *, declared: bool = False) -> None:
        """Note that `written` in a file stands for `value` at the key `at`.

        `declared`: the setting is declared a secret.
        """
        if value.strip():
            self._added[written, value, at if declared else _place(at)] = None
            self._replacements.clear()

    def learn(self, written: str, value: str, at: KeyPath, *, declared: bool) -> None:
        """Note a later value of a secret, as `add` does; any thread may call this."""
        place = at if declared else _place(at)
        if (written, value, place) in self._added:
            return
        if before := self._later.get((written, place)):
            self._added.pop((written, before, place), None)  # tokens of years are many
        self._later[written, place] = value
        self.add(written, value, at, declared=declared)
        self.learned(value)

    def hide(self, text: str, at: KeyPath = ()) -> str:
        """Return `text` about the key `at` with the text of the file in place of every value.

        Without `at`, every value is looked for.
        """
        if not self._added:
            return text
        about = _place(at)
        added = [*self._added]  # another thread may learn a value meanwhile
        key = at if any(each == at for _, _, each in added) else about
        if key not in self._replacements:
            visible = [
                (written, value)
                for written, value, place in added
                if not at or place in {about, at}
            ]
            self._replacements[key] = _Replacements(visible, secret=self._secret)
        return self._replacements[key].hide(text)

    def hide_all_in(
        self, findings: Iterable[ConfigError], locations: Mapping[KeyPath, SourceLocation]
    ) -> list[ConfigError]:
        """Return distinct findings without values, in the order of files, lines and columns.

        `locations` tell which key a finding is about.
        """
        keys = {_position(locations[at]): at for at in sorted(locations, key=len)}
        hidden = [self._hide_in(each, keys.get(_position(each), ())) for each in findings]
        shown = {str(each): each for each in hidden}
        return sorted(shown.values(), key=_position)

    def _hide_in(self, finding: ConfigError, at: KeyPath) -> ConfigError:
        """Return the finding without values in its texts; its location is the same."""
        examples = tuple(replace(each, name=self.hide(each.name, at)) for each in finding.examples)
        reason, hint = self.hide(finding.reason, at), self.hide(finding.hint, at)
        path, line, column = _position(finding)
        location = (self._paths.get(path, path), line, column)
        return ConfigError(*location, finding.rule, reason, hint, finding.severity, examples)


class _Replacements:
    """The values that one text may contain, and the texts of the file for them."""

    def __init__(self, added: Sequence[tuple[str, str]], *, secret: bool) -> None:
        self._secret = secret
        self._written = [written for written, _ in added]  # a mark has the position of one
        self._values: dict[str, str] = {}  # marks, by the value and by its `repr`
        self._words: dict[str, str] = {}  # marks, by each long word of a value
        for position, (_, value) in enumerate(added):
            mark = f"\0{position}\0"
            for form in (value, repr(value)[1:-1]):
                self._values.setdefault(form, mark)
            for word in _WORD.findall(value) if secret else ():
                self._words.setdefault(word, mark)
        ordered = sorted(self._values, key=len, reverse=True)  # one may contain another
        self._pattern = re.compile("|".join(map(_whole, ordered)) if ordered else "(?!)")

    def hide(self, text: str) -> str:
        text = text.replace("\0", "\\0")
        if self._secret:
            text = _QUOTED.sub(lambda found: self._part(found[0]), text)
        text = self._pattern.sub(lambda found: self._values[found[0]], text)
        text = _WORD.sub(lambda found: self._words.get(found[0], found[0]), text)
        return _MARK.sub(lambda found: self._written[int(found[1])], text)

    def _part(self, content: str) -> str:
        """Return a mark for the part of a value that an error quotes; other content as it is."""
        if len(content) >= MIN_LENGTH:
            for value, mark in self._values.items():
                if content in value:
                    return mark
        return content


def _position(found: ConfigError | SourceLocation) -> tuple[str, int, int]:
    return found.path, found.line, found.column


def _place(at: KeyPath) -> KeyPath:
    """Return the section whose texts may have the value of a key: names stand in all findings."""
    if at[:1] in _NAMES or (at[:1] == ("endpoints",) and at[2:3] in _NAMES_OF_ENDPOINT):
        return ("routes",)
    return at[:1]


def _whole(value: str) -> str:
    pattern = re.escape(value)
    return pattern if len(value) >= MIN_LENGTH else rf"(?<!\w){pattern}(?!\w)"
