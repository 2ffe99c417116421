"""When kernels start: what launching them costs, on a stream and inside a CUDA graph.

Pure formulas; this file knows no device. Launch modes: a stream takes one launch per kernel; a graph records
the launches once and replays them together, at a smaller cost per node and a fixed one per replay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fusesim.arrays import Numbers

LAUNCH_MODES: Final = ("stream", "latency", "graph")

TEXTBOOK_LAUNCH: Final = {"stream": 4e-6, "latency": 4e-6, "graph": 1e-6}
"""Launch overhead of the textbook, per kernel (the lesson's 4 us) or per graph node. [s]"""

TEXTBOOK_REPLAY: Final = 5e-6
"""Fixed cost of one graph replay in the textbook. [s]"""


def textbook_launch_time(
    *, kernels: Numbers, launch_overhead: Numbers, replay_overhead: Numbers, graph_repeats: Numbers
) -> Numbers:
    """Time that the textbook gives to launches: all of them in a row, nothing overlapped.

    Parameters
    ----------
    kernels : float or ndarray
        Kernels, or graph nodes.
    launch_overhead : float or ndarray
        Cost of each. [s]
    replay_overhead : float or ndarray
        Fixed cost of one graph replay; 0 on a stream. [s]
    graph_repeats : float or ndarray
        Passes inside one captured graph that share a replay.

    Returns
    -------
    float or ndarray
        kernels x launch overhead + replay overhead / repeats. [s]

    Notes
    -----
    Real launches are queued while earlier kernels run, so on a stream only the larger of host and device time is
    paid; that assumption fails first, and always for long kernels.
    """
    return kernels * launch_overhead + replay_overhead / graph_repeats
