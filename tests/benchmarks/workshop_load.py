"""A class of simulated learners, each moving a slider twice a second: `bench_workshop.py load` runs it.

The server has one core, the learners another. A learner has a page, a program, a device and a slider of its own, and
walks along it at random; like the page's script it waits for an answer before it asks again, and asks from the view
that the last answer gave. What an answer takes is counted from when the learner moved the slider, so waiting in line
counts too.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

EACH = 0.5
"""Between two moves of one learner. [s]"""

DEVICES = ("h100-sxm", "h200-sxm", "a100-sxm-80gb", "l4", "b200", "rtx-4090")
PATTERNS = (
    *(("rmsnorm", "tokens"), ("softmax", "rows"), ("swiglu", "tokens"), ("gelu", "rows"), ("layernorm", "cols")),
    *(("matmul_bias_gelu", "m"), ("attention", "seq"), ("chain", "elements"), ("dropout_residual_layernorm", "tokens")),
)


class Slider(NamedTuple):
    """Where a learner is: a page, its settings, and a slider with its lowest place, its highest and its step."""

    page: str
    settings: str
    control: str
    low: float
    high: float
    step: float


def chain(chance: random.Random) -> Slider:
    ops = chance.choice(("5", "8", "gelu*8", "add,mul,relu,neg,abs", "silu*4"))
    model = chance.choice(("", "&model=calibrated"))
    settings = f"?ops={ops}&elements=33554432&dtype=bf16&device={chance.choice(DEVICES)}&launch=stream{model}"
    return Slider("/", settings, "size", 10, 30, 0.25)


def plans(chance: random.Random) -> Slider:
    name, size = chance.choice(PATTERNS)
    strategy = chance.choice(("inductor", "vertical", "xla"))
    settings = f"?pattern={name}&device={chance.choice(DEVICES)}&strategy={strategy}"
    return Slider("/plans/", settings, f"{size}-slider", 4, 15, 1)


def roofline(chance: random.Random) -> Slider:
    return plans(chance)._replace(page="/roofline/")


PAGES = {"chain": chain, "plans": plans, "roofline": roofline}


@dataclass
class Found:
    """What a run comes to: answers' times [s], what failed, the server's CPU time [s] and its memory over time [B]."""

    taken: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)
    cpu: float = 0.0


class Server:
    """`fusesim workshop` as a process on one core."""

    def __enter__(self) -> Self:
        line = [sys.executable, "-m", "fusesim", "workshop", "--port", "0"]
        pinned = ["taskset", "-c", "0", *line] if shutil.which("taskset") and (os.cpu_count() or 1) > 1 else line
        self.process = subprocess.Popen(pinned, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline().split(":")[3].split("/")[0])
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    @property
    def cpu(self) -> float:
        """CPU time so far. [s]."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory(self) -> int:
        """Memory in use. [B]."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, request: dict) -> tuple[str, dict]:
    """Send a request over a kept connection as the page's script does; return the status and the answer."""
    asked = {"output": "answer.data", "outputs": {"id": "answer", "property": "data"}}
    inputs = [{"id": "request", "property": "data", "value": request}]
    body = json.dumps({**asked, "inputs": inputs, "changedPropIds": ["request.data"]}).encode()
    head = (
        f"POST {path}_dash-update-component HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Accept-Encoding: gzip, deflate, br\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    answered = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(answered.split("content-length:")[1].split("\r\n")[0])
    content = await reader.readexactly(length)
    status = answered.split(" ", 2)[1]
    if status != "200":
        return status, {}
    text = gzip.decompress(content) if "content-encoding: gzip" in answered else content
    return status, json.loads(text)["response"]["answer"]["data"]


async def learner(port: int, slider: Slider, chance: random.Random, until: float, found: Found) -> None:
    """Move a slider until it is time to stop."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    settings, due = slider.settings, time.perf_counter() + chance.random() * EACH
    place = (slider.low + slider.high) / 2 // slider.step * slider.step
    while due < until:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        place = min(max(place + chance.choice((-1, 1)) * slider.step, slider.low), slider.high)
        status, answer = await ask(
            reader, writer, slider.page, {"settings": settings, "changes": {slider.control: place}}
        )
        found.taken.append(time.perf_counter() - due)
        if status != "200" or any(answer["alerts"].values()):
            found.failed.append(f"{slider.page}{settings}: status {status} {answer.get('alerts')}")
        settings = answer.get("query", settings)
        due += EACH
    writer.close()


async def watch(server: Server, until: float, found: Found) -> None:
    while time.perf_counter() < until:
        found.memory.append(server.memory)
        await asyncio.sleep(1.0)


async def lesson(server: Server, pages: list[str], learners: int, seconds: float) -> Found:
    """Let a class work for a while."""
    found, before, until = Found(), server.cpu, time.perf_counter() + seconds
    chances = [random.Random(seed) for seed in range(learners)]
    sliders = [PAGES[pages[seed % len(pages)]](chance) for seed, chance in enumerate(chances)]
    moving = [
        learner(server.port, slider, chance, until, found) for slider, chance in zip(sliders, chances, strict=True)
    ]
    await asyncio.gather(*moving, watch(server, until, found))
    found.cpu = server.cpu - before
    return found


def measure(pages: list[str], seconds: float, learners: int = 100) -> None:
    """Print what a class on these pages has to wait for an answer, from a server that has just started."""
    if hasattr(os, "sched_setaffinity") and (os.cpu_count() or 1) > 1:
        os.sched_setaffinity(0, {1})
    with Server() as server:
        found = asyncio.run(lesson(server, pages, learners, seconds))
    marks = statistics.quantiles(found.taken, n=100)
    third = len(found.memory) // 3
    print(
        f"{' and '.join(pages)}, {learners} learners, {seconds:.0f} s: {len(found.taken)} answers, "
        f"{len(found.failed)} failed; p50 {marks[49] * 1e3:.0f} ms, p95 {marks[94] * 1e3:.0f} ms, "
        f"worst {max(found.taken) * 1e3:.0f} ms; {found.cpu / len(found.taken) * 1e3:.2f} ms of CPU each; "
        f"memory {found.memory[0] >> 20} MiB at first, {found.memory[third] >> 20} after a third, "
        f"{found.memory[2 * third] >> 20} after two, {found.memory[-1] >> 20} at the end",
        flush=True,
    )
    for problem in found.failed[:3]:
        print(f"  {problem}")
