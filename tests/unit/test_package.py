import subprocess
import sys

import fusesim


def modules_after(statement):
    """Return what a fresh interpreter has loaded."""
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.split())


def test_importing_the_library_stays_light():
    loaded = modules_after("import fusesim")
    heavy = {"dash", "plotly", "cupy", "torch", "onnx", "rich", "click", "flask", "waitress", "pandas", "scipy"}
    assert not loaded & heavy
    assert not {name for name in loaded if name.startswith(("fusesim.cli", "fusesim.app", "app"))}
    assert len(loaded) < 450  # numpy and pydantic are most of them


def test_pricing_reads_one_device_and_stays_light():
    loaded = modules_after("import fusesim; fusesim.price_chain(5, 4096)")
    assert not loaded & {"dash", "plotly", "cupy", "rich", "click"}


def test_the_readmes_modules_need_no_import_of_their_own():
    assert "fusesim.why" in modules_after("import fusesim; fusesim.why.why")


def test_everything_that_is_promised_is_there():
    assert all(hasattr(fusesim, name) for name in fusesim.__all__)
    assert len(set(fusesim.__all__)) == len(fusesim.__all__)
