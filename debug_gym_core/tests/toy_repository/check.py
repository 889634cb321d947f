import pathlib
import sys

sys.exit(pathlib.Path("answer").read_text() != "42")
