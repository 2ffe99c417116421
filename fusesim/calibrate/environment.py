"""What a measurement depends on besides the case: the GPU, its driver and clocks, the host, and who else is there."""

from __future__ import annotations

import contextlib
import platform
import shutil
import statistics
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Environment = dict[str, str | float | int]

QUERIES: Final = {
    "driver_version": "driver",
    "vbios_version": "vbios",
    "clocks.max.sm": "clock_max",
    "clocks.max.mem": "memory_clock_max",
    "clocks.sm": "clock_at_start",
    "clocks.mem": "memory_clock_at_start",
    "power.limit": "power_limit",
    "persistence_mode": "persistence",
}
"""What nvidia-smi is asked, and the names in the file."""
SAMPLED: Final = {"power.draw": "power", "clocks.sm": "clock", "temperature.gpu": "temperature"}
"""What is sampled while measuring. [W, Hz, degrees Celsius]."""
MEGA: Final = 1e6
"""nvidia-smi answers in MHz."""
SAMPLING: Final = 1000
"""Milliseconds between samples."""
BUSY: Final = 20.0
"""Load above which a GPU works for somebody else, before anything is measured. [%]."""
PATIENCE: Final = 20
"""Seconds that nvidia-smi gets to answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as its driver describes it: memory and cache in bytes."""

    name: str
    sms: int
    memory: int
    cache: int
    capability: str
    bus: str
    versions: dict[str, str]

    def environment(self) -> Environment:
        """Return plain values for a file."""
        facts: Environment = {"gpu": self.name, "sms": self.sms, "memory_bytes": self.memory, "cache_bytes": self.cache}
        return facts | {"compute_capability": self.capability} | self.versions


def gpu_facts(cupy: Any) -> Gpu:
    """Return what CuPy says of the GPU in use."""
    runtime, device = cupy.cuda.runtime, cupy.cuda.Device()
    properties = runtime.getDeviceProperties(device.id)
    name = properties["name"]
    return Gpu(
        name=name.decode() if isinstance(name, bytes) else str(name),
        sms=int(properties["multiProcessorCount"]),
        memory=int(properties["totalGlobalMem"]),
        cache=int(properties["l2CacheSize"]),
        capability=f"{properties['major']}.{properties['minor']}",
        bus=str(device.pci_bus_id),
        versions={
            "cupy": str(cupy.__version__),
            "cuda_driver": _version(runtime.driverGetVersion()),
            "cuda_runtime": _version(runtime.runtimeGetVersion()),
            "nvrtc": ".".join(map(str, cupy.cuda.nvrtc.getVersion())),
        },
    )


def _version(number: int) -> str:
    """Return CUDA's version as people write it: 13000 is 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}"


def host_facts(version: str) -> Environment:
    """Return what the host is, and the version of fusesim."""
    return {"cpu": cpu_model(), "system": platform.platform(), "python": platform.python_version(), "fusesim": version}


def cpu_model() -> str:
    """Return the name of the processor."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def driver_facts(bus: str) -> Environment:
    """Return what nvidia-smi says of the GPU, nothing where there is none."""
    answer = _ask("--query-gpu=" + ",".join(QUERIES), bus)
    values = answer[0].split(", ") if answer else []
    if len(values) != len(QUERIES):
        return {}
    return {
        name: _number(value, name) for name, value in zip(QUERIES.values(), values, strict=True) if value[:1] != "["
    }


def load(bus: str = "") -> float:
    """Return how busy the GPU is, the calmer of two looks, NaN where nobody can tell. [%]."""
    looks = [_ask("--query-gpu=utilization.gpu", bus) for _ in range(2)]
    numbers = [_number(look[0], "load") for look in looks if look]
    return min((float(n) for n in numbers if not isinstance(n, str)), default=float("nan"))


def _ask(query: str, bus: str) -> list[str]:
    """Return the lines of an answer of nvidia-smi, none where it does not work."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program and arguments
            _command(query, bus), capture_output=True, text=True, timeout=PATIENCE, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.strip().splitlines()


def _command(query: str, bus: str, *more: str) -> list[str]:
    program = shutil.which("nvidia-smi") or "nvidia-smi"
    return [program, query, "--format=csv,noheader,nounits", *(["-i", bus] if bus else []), *more]


def _number(text: str, name: str) -> str | float:
    """Return the number of an answer in base units, or the text where it is none."""
    try:
        return float(text) * (MEGA if "clock" in name else 1)
    except ValueError:
        return text.strip()


@contextlib.contextmanager
def sampled(bus: str) -> Iterator[Environment]:
    """Sample power, clock and temperature while the block runs; the yielded dict holds the summary after it.

    Parameters
    ----------
    bus : str
        The GPU's place, as `Gpu.bus`.
    """
    summary: Environment = {}
    command = _command("--query-gpu=" + ",".join(SAMPLED), bus, f"--loop-ms={SAMPLING}")
    try:
        process = subprocess.Popen(  # noqa: S603 - a fixed program and arguments
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
    except OSError:
        yield summary
        return
    try:
        yield summary
    finally:
        process.terminate()
        try:
            lines, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            lines, _ = process.communicate()
        summary |= summarise(lines.splitlines())


def summarise(lines: Sequence[str]) -> Environment:
    """Return median, lowest and highest of every sampled quantity, and how many samples there were.

    Examples
    --------
    >>> summarise(["100, 1980, 40", "120, 1980, 42", "110, [N/A], 41", "90,"])["power_median"]
    110.0
    """
    columns: dict[str, list[float]] = {name: [] for name in SAMPLED.values()}
    for line in lines:
        values = line.split(", ")
        for name, value in zip(columns, values, strict=False) if len(values) == len(columns) else ():
            number = _number(value, name)
            if isinstance(number, float):
                columns[name].append(number)
    found: Environment = {}
    for name, numbers in columns.items():
        if numbers:
            found |= {f"{name}_median": statistics.median(numbers), f"{name}_lowest": min(numbers)}
            found |= {f"{name}_highest": max(numbers), f"{name}_samples": len(numbers)}
    return found
