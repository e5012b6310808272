"""YAML as the checks read it: a key that stands twice is a mistake.

Uses PyYAML; where that is missing, installs it into a virtual environment below target/ and starts the script again there.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

try:
    import yaml
except ImportError:
    home = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "yaml"
    python = home / "bin" / "python"
    if Path(sys.prefix).resolve() == home.resolve():
        sys.exit("PyYAML was installed and cannot be imported")
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", "pyyaml>=6,<7"], check=True)
    os.execv(python, [str(python), *sys.argv])

YAMLError = yaml.YAMLError


class _UniqueKeys(yaml.SafeLoader):
    """YAML takes the last of two equal keys; here the second is a mistake."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is there twice", node.start_mark)
        return super().construct_mapping(node, deep)


def documents(path):
    """The documents of a file, those that say nothing left out."""
    return [document for document in yaml.load_all(path.read_text(), Loader=_UniqueKeys) if document is not None]
