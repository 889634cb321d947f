"""Packages that travel: whole, unseen, and understood by every interpreter."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
import tempfile
from importlib import resources
from pathlib import Path

import pytest
import support

from debug_gym_core.sandbox import shipping

TRAVELLERS = (
    "debug_gym_core.sandbox.guest",
    "debug_gym_core.sandbox.zygote",
    "debug_gym_core.grading.runner",
    "debug_gym_tool_pdb.debuggee",
    "debug_gym_tool_trace.tracee",
)
SOURCES = {
    "numbers": b"from .words import WORD\nGIVEN = globals().get('GIVEN', 0)\ndef count(): return len(WORD) + GIVEN\n",
    "words": b"from shared.words import WORD\n",
    "shared.words": b"WORD = 'abc'\n",
    "main": b"import sys\nfrom . import words\nfrom .numbers import count\nme = sys._getframe().f_code.co_filename\n",
}
TRIAL = f"""\
{shipping.BOOT}
import builtins, json
before = list(sys.meta_path), set(sys.modules)
with open(sys.argv[1], "rb") as file:
    main = enter(unpack(file.read()), GIVEN=2)
left = [name for name in sys.modules if name.startswith("<")]
same = list(sys.meta_path) == before[0]
builtins.len = lambda value: 1000
print(json.dumps([main.count(), main.words.WORD, main.me, left, same, main.__name__]))
"""

LOADED = f"""\
{shipping.BOOT}
import json
class Codes(dict):
    loaded = []
    def __getitem__(self, name):
        self.loaded.append(name)
        return dict.__getitem__(self, name)
with open(sys.argv[1], "rb") as file:
    codes = Codes(unpack(file.read()))
enter(codes)
print(json.dumps(sorted(set(codes) - set(codes.loaded))))
"""


def entered(python: str, blob: bytes, program: str = TRIAL) -> list[object]:
    """What a program says of the package that it entered."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(blob)
        file.flush()
        done = subprocess.run([python, "-I", "-S", "-c", program, file.name], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("python", support.interpreters(handful=True))
def test_a_package_works_and_leaves_nothing_to_be_found(python: str) -> None:
    blob = shipping.pack(SOURCES).blob()
    assert entered(python, blob) == [5, "abc", shipping.NAME, [], True, f"{shipping.NAME}.main"]


def test_one_is_sent_what_it_understands() -> None:
    parcel = shipping.pack(SOURCES)

    magic = importlib.util.MAGIC_NUMBER.hex()
    for blob in (parcel.blob_for(magic), parcel.blob_for("none"), parcel.blob_for("../" * 99)):
        assert entered(sys.executable, blob)[0] == 5
    assert parcel.codes in parcel.blob_for(magic) and parcel.sources not in parcel.blob_for(magic)
    assert parcel.sources in parcel.blob_for("none") and parcel.codes not in parcel.blob_for("none")


def test_code_that_was_cached_is_as_code_that_is_compiled_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "travels"
    package.mkdir()
    (package / "__init__.py").write_text('"""What it is."""')
    (tmp_path / "shared").mkdir()
    for name, source in SOURCES.items():
        path = tmp_path.joinpath(*name.split(".")) if "." in name else package / name
        path.with_suffix(".py").write_bytes(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(shipping, "_SHARED", "shared.")
    for _ in range(2):
        monkeypatch.setattr(shipping, "_PARCELS", {})
        assert entered(sys.executable, shipping.parcel("travels").blob())[:3] == [5, "abc", shipping.NAME]
    assert sorted(shipping.sources_of("travels")) == sorted(SOURCES)


@pytest.mark.parametrize("package", TRAVELLERS)
@pytest.mark.parametrize("python", support.interpreters(handful=True))
def test_every_module_of_a_traveller_is_there_once_main_is_imported(package: str, python: str) -> None:
    assert entered(python, shipping.parcel(package).blob(), LOADED) == []


@pytest.mark.parametrize("package", TRAVELLERS)
def test_all_that_a_traveller_imports_is_known(package: str) -> None:
    nodes = [node for source in shipping.sources_of(package).values() for node in ast.walk(ast.parse(source))]
    wanted = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    wanted |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom) and not node.level}
    ours = {name for name in shipping.sources_of(package) if "." in name}
    assert set(shipping.imports(package)) | ours == wanted - {"__future__"}


@pytest.mark.parametrize("package", TRAVELLERS)
def test_a_traveller_is_flat_and_imports_its_own_modules_at_once(package: str) -> None:
    """Once `main` is imported, its own modules, and those that it shares, cannot be found any more."""
    for file in resources.files(package).iterdir():
        assert file.name == "__pycache__" or file.name.endswith(".py")
    for name, source in shipping.sources_of(package).items():
        for function in ast.walk(ast.parse(source)):
            if isinstance(function, ast.FunctionDef | ast.Lambda):
                imports = [node for node in ast.walk(function) if isinstance(node, ast.ImportFrom)]
                late = [node for node in imports if node.level or str(node.module).startswith("debug_gym")]
                assert not late, (name, ast.unparse(late[0]))
