"""Times chains on a stream of CuPy's: inside a graph, with the queue full, or one from idle.

A chain is a function that issues its kernels. Every mode returns seconds per chain, one for each repeat.
"""

from __future__ import annotations

import ctypes
import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WARMUPS, MIN_REPEATS, MAX_REPEATS = 3, 7, 25
ENOUGH: Final = 0.03
"""Repeats of one case stop after this long, once there are `MIN_REPEATS`. [s]"""
QUEUED_KERNELS: Final = 200
"""Kernels put behind a blocked stream; drivers queue about a thousand."""
MIN_QUEUED_CHAINS: Final = 4
"""Chains that are queued however long they take."""
HOLD_CYCLES: Final = 2e7
"""How long the stream is held while they are queued: about 10 ms, longer than CuPy takes to issue them."""
TRIVIAL_CALLS: Final = 2000

SOURCE: Final = r"""
extern "C" __global__ void spin(const long long cycles) {
    const long long start = clock64();
    while (clock64() - start < cycles) { }
}
"""


class Timer:
    """A stream with its events, and the three ways of timing on it."""

    def __init__(self, cupy: Any, driver: Any, stream: Any) -> None:
        self.cupy, self.driver, self.stream = cupy, driver, stream
        self.spin = cupy.RawModule(code=SOURCE).get_function("spin")
        self.start, self.end = cupy.cuda.Event(), cupy.cuda.Event()
        self.call_overhead = 0.0

    def graph(self, chains: Sequence[Callable[[], None]]) -> list[float]:
        """Time a pass over the chains that is captured in a graph, per chain."""
        with self.stream:
            for chain in chains[:2]:
                chain()
            self.stream.synchronize()
            self.stream.begin_capture()
            for chain in chains:
                chain()
            graph = self.stream.end_capture()
            for _ in range(WARMUPS):
                graph.launch(self.stream)
            self.stream.synchronize()
            times: list[float] = []
            began = time.perf_counter()
            while len(times) < MIN_REPEATS or (len(times) < MAX_REPEATS and time.perf_counter() - began < ENOUGH):
                times.append(self._between_events(lambda: graph.launch(self.stream)) / len(chains))
        return times

    def _between_events(self, run: Callable[[], object]) -> float:
        """Return the device's time between an event before and one after a run. [s]."""
        self.start.record(self.stream)
        run()
        self.end.record(self.stream)
        self.end.synchronize()
        return float(self.cupy.cuda.get_elapsed_time(self.start, self.end)) * 1e-3

    def queue(self, chains: Sequence[Callable[[], None]], kernels: int) -> tuple[list[float], float]:
        """Queue chains behind a kernel that holds the stream, so that they run back to back.

        Returns
        -------
        list of float
            The device's time per chain. [s]
        float
            The host's time to issue one chain, median. [s]
        """
        times, hosts = [], []
        with self.stream:
            chains[0]()
            self.stream.synchronize()
            once = self._between_events(chains[0])
            passes = min(max(QUEUED_KERNELS // kernels, 1), max(int(ENOUGH / once), MIN_QUEUED_CHAINS))
            queued = [chains[index % len(chains)] for index in range(passes)]
            for _ in range(WARMUPS + MIN_REPEATS):
                self.spin((1,), (1,), (np.int64(HOLD_CYCLES),))
                times.append(self._between_events(lambda: hosts.append(_issue(queued))) / passes)
        return times[WARMUPS:], float(np.median(hosts[WARMUPS:])) / passes

    def latency(self, chains: Sequence[Callable[[], None]]) -> list[float]:
        """Time one chain on an idle device by the host's clock, from the first launch to the end of the synchronise.

        The measured cost of calling the driver through Python is taken off once; issuing the launch and returning
        from the synchronise are about half of it each, and the rest happens while the device works.
        """
        handle = ctypes.c_void_p(self.stream.ptr)
        times = []
        with self.stream:
            for repeat in range(WARMUPS + MAX_REPEATS):
                self.stream.synchronize()
                began = time.perf_counter()
                chains[repeat % len(chains)]()
                self.driver.cuStreamSynchronize(handle)
                times.append(max(time.perf_counter() - began - self.call_overhead, 0.0))
        return times[WARMUPS:]


def _issue(chains: Sequence[Callable[[], None]]) -> float:
    """Issue chains and return how long the host took. [s]."""
    began = time.perf_counter()
    for chain in chains:
        chain()
    return time.perf_counter() - began


def trivial_call(call: Callable[[], None]) -> float:
    """Return the median time of a call that does nothing: what calling through Python costs. [s]."""
    group = 20
    return float(np.median([_issue([call] * group) / group for _ in range(TRIVIAL_CALLS // group)]))
