#!/usr/bin/env python3
"""Print where this machine's own apt takes Debian from: mirror, keyring.

One line, two fields separated by a tab: the mirror's address without a trailing slash and the keyring's path (empty
when the sources name none that is a file). The suite looked for is the first argument. Nothing is written anywhere.
"""

import re
import subprocess
import sys
from pathlib import Path

DEFAULT_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
FIELDS = "$(REPO_URI)\t$(RELEASE)\t$(COMPONENT)\t$(SOURCESENTRY)"


def targets() -> list[tuple[str, str, str, str]]:
    """Return apt's package indexes as (address, release, component, file:stanza of the source)."""
    command = ["apt-get", "indextargets", "--format", FIELDS, "Created-By: Packages"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = []
    for line in listing.splitlines():
        address, release, component, entry = line.split("\t")
        found.append((address, release, component, entry))
    return found


def keyring_of(entry: str) -> Path | None:
    """Return the keyring file that the source at `entry` (FILE:NUMBER, as apt writes it) names, or None."""
    file, _, number = entry.rpartition(":")
    path = Path(file)
    if not path.is_file() or not number.isdigit():
        return None
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".sources":
        stanzas = re.split(r"\n[ \t]*\n", text)
        named = [match for stanza in stanzas if (match := re.search(r"(?mi)^Signed-By:[ \t]*(/\S+)", stanza))]
        match = named[0] if named else None
    else:
        match = re.search(r"signed-by=(/[^\s,\]]+)", text.splitlines()[int(number) - 1])
    return Path(match.group(1)) if match and Path(match.group(1)).is_file() else None


def main() -> int:
    """Print the source, or say why there is none."""
    suite = sys.argv[1]
    plain = [target for target in targets() if target[2] == "main" and not re.search(r"[-/]", target[1].rstrip("/"))]
    best = [target for target in plain if target[1] == suite] or plain
    if not best:
        print(f"no Debian archive with a plain suite such as {suite} in apt's sources", file=sys.stderr)
        return 1
    address, _, _, entry = best[0]
    keyring = keyring_of(entry) or DEFAULT_KEYRING
    print(address.rstrip("/"), keyring if keyring.is_file() else "", sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
