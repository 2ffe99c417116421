"""What a wheel carries, and that it works where there is no checkout."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIMIT = 120

PROGRAM = """
import sys
from pathlib import Path
import fusesim
from fusesim.cli import main
from fusesim.cli.shared import load_app
assert Path(fusesim.__file__).is_relative_to(sys.argv[1])
assert load_app().__name__ == "fusesim.app"
assert load_app().create_app().server.test_client().get("/").status_code == 200
sys.exit(main(["chain", "--json"]))
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(folder),
        str(ROOT),
    ]
    subprocess.run([sys.executable, "-m", "pip", *build], check=True, timeout=LIMIT)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def content(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_one_package_and_nothing_beside_it(content):
    assert {name.split("/")[0] for name in content if ".dist-info/" not in name} == {"fusesim"}


def test_workshop_devices_and_types_are_inside(content):
    assert {"fusesim/__init__.py", "fusesim/py.typed", "fusesim/app/__init__.py", "fusesim/cli/main.py"} <= content
    modules = {f"fusesim/{path.relative_to(ROOT)}" for path in (ROOT / "app").rglob("*.py")}
    assert modules <= content
    assets = {f"fusesim/{path.relative_to(ROOT)}" for path in (ROOT / "app/assets").iterdir()}
    assert assets <= content
    devices = {f"fusesim/hardware_specs/{path.name}" for path in (ROOT / "hardware_specs").glob("*.toml")}
    assert devices <= content


def test_no_build_leftovers(content):
    assert not [name for name in content if "__pycache__" in name or name.endswith(".pyc")]


def test_pictures_of_the_workshop_stay_at_home(content):
    assert (ROOT / "app/screenshots").is_dir()
    assert not [name for name in content if "screenshots" in name]


def test_data_and_calibrations_are_inside(content):
    for folder in ("app/data", "hardware_specs/calibrations"):
        files = {f"fusesim/{path.relative_to(ROOT)}" for path in (ROOT / folder).glob("*.json")}
        assert files
        assert files <= content


def test_it_runs_outside_the_checkout(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    site = str(tmp_path / "site")
    command = [sys.executable, "-P", "-W", "error", "-c", PROGRAM, site]
    environment = os.environ | {"PYTHONPATH": site}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert '"device": "h100-sxm"' in done.stdout
