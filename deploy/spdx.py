"""The licence of an installed package as an SPDX expression; needs only the standard library."""

from __future__ import annotations

from importlib.metadata import Distribution

ALLOWED = frozenset(
    {
        "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "EPL-2.0", "ISC", "MIT",
        "MIT-0",
        "PSF-2.0", "Python-2.0", "Zlib",
    }
)  # fmt: skip  # SPDX identifiers
SPDX_NAMES = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "http://www.apache.org/licenses/LICENSE-2.0": "Apache-2.0",
    "3-Clause BSD License": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
}


def licence(package: Distribution) -> str:
    """Return the licence of a package, as an SPDX expression where possible."""
    if expression := metadata_field(package, "License-Expression"):
        return expression
    declared = metadata_field(package, "License").partition("\n")[0]
    classifiers = map(str, package.metadata.get_all("Classifier") or ())
    classified = [
        each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License :: ")
    ]
    for text in (declared, *classified):
        if text in SPDX_NAMES or text in ALLOWED:
            return SPDX_NAMES.get(text, text)
    return declared or ", ".join(classified)


def metadata_field(package: Distribution, name: str) -> str:
    """Return a field of the package's metadata; an empty text when it is missing."""
    return str((package.metadata.get_all(name) or ("",))[0]).strip()
