"""Wheel and sdist hold what git holds below analyzer/: no data file is forgotten, nothing leaks."""

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import analyzer

ROOT = Path(__file__).parents[1]


def tracked() -> set[str]:
    """Files of analyzer/ that git has, or would add."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a checkout, to know what belongs in")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "analyzer"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {name for name in names.split("\0") if name and (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    if importlib.util.find_spec("hatchling") is None:
        pytest.skip("needs hatchling, the build backend of the lock file")
    missing = [
        name for name in ("README.md", "LICENSE", "CHANGELOG.md") if not (ROOT / name).exists()
    ]
    if missing:
        pytest.skip(f"cannot build without {', '.join(missing)}")
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_wheel(dist):
    (wheel,) = dist.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        meta = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(meta).decode()
        scripts = archive.read(meta.replace("METADATA", "entry_points.txt")).decode()
    assert {name for name in names if ".dist-info/" not in name} == tracked()
    assert f"\nVersion: {analyzer.__version__}\n" in metadata
    assert "analyze = analyzer.cli:main" in scripts
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_sdist(dist):
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {member.name.split("/", 1)[1] for member in archive if member.isfile()}
    inside = {name for name in names if name.startswith("analyzer/")}
    assert inside == tracked()
    wanted = {"README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "PKG-INFO"}
    assert names - inside - {".gitignore"} == wanted
