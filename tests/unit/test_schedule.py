import numpy as np
import pytest

from fusesim.schedule import LAUNCH_MODES, TEXTBOOK_LAUNCH, TEXTBOOK_REPLAY, textbook_launch_time


def launch_time(kernels, **changes):
    arguments = {"launch_overhead": 4.0, "replay_overhead": 0.0, "graph_repeats": 1.0}
    return textbook_launch_time(kernels=kernels, **(arguments | changes))


def test_on_a_stream_every_kernel_is_launched():
    assert launch_time(5) == 20  # 5 x 4 s


def test_a_graph_adds_its_replay_once():
    assert launch_time(5, launch_overhead=1.0, replay_overhead=5.0) == 10  # 5 nodes x 1 s + 5 s


def test_passes_in_one_graph_share_its_replay():
    assert launch_time(5, launch_overhead=1.0, replay_overhead=5.0, graph_repeats=10.0) == 5.5  # 5 x 1 s + 5 s / 10


def test_arrays_go_through():
    assert launch_time(np.array([1.0, 5.0])).tolist() == [4, 20]


def test_every_launch_mode_has_its_textbook_overhead():
    assert set(TEXTBOOK_LAUNCH) == set(LAUNCH_MODES)
    assert TEXTBOOK_LAUNCH["stream"] == pytest.approx(4e-6)  # the lesson's launch
    assert TEXTBOOK_LAUNCH["graph"] == pytest.approx(1e-6)  # a node of a graph costs less
    assert pytest.approx(5e-6) == TEXTBOOK_REPLAY
