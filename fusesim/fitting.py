"""Whether a plan's tensors fit a device's memory. It changes no price: the price is of a device that had the room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fusesim import units

if TYPE_CHECKING:
    from fusesim.graph import Graph
    from fusesim.hardware import HardwareProfile


def input_bytes(graph: Graph) -> int:
    """Return what the inputs of a graph take, each memory once. [B]."""
    sizes: dict[str, int] = {}
    for name in graph.inputs:
        tensor = graph.tensors[name]
        sizes[tensor.storage] = max(sizes.get(tensor.storage, 0), tensor.bytes)
    return sum(sizes.values())


def too_large(graph: Graph, device: HardwareProfile, peak: float) -> list[str]:
    """Say so where inputs and what is alive at once are more than the device's memory.

    Parameters
    ----------
    graph : Graph
        Its inputs are there all the time.
    device : HardwareProfile
        Nothing is said where its file states no capacity.
    peak : float
        Bytes above the inputs at the worst moment. [B]
    """
    need = _beyond(graph, device, peak)
    return [f"{_takes(device, units.format_quantity(need, units.SIZE))}: it will not fit"] if need else []


def sides_too_large(graph: Graph, device: HardwareProfile, unfused: float, fused: float) -> list[str]:
    """Say in one sentence which of two plans does not fit, each given by its peak above the inputs. [B]."""
    before, after = (_beyond(graph, device, peak) for peak in (unfused, fused))
    first, second = (units.format_quantity(need, units.SIZE) for need in (before, after))
    if before and after:
        needs = first if first == second else f"{first} unfused and {second} fused"
        return [f"{_takes(device, needs)}: neither will fit"]
    if before:
        return [f"{_takes(device, f'{first} unfused')}: only the fused plan will fit"]
    return [f"{_takes(device, f'{second} fused')}: only the unfused plan will fit"] if after else []


def _beyond(graph: Graph, device: HardwareProfile, peak: float) -> float:
    """Return what is needed if that is more than there is, 0 otherwise. [B]."""
    capacity, need = device.memory.capacity, input_bytes(graph) + float(peak)
    return need if capacity is not None and need > capacity.si else 0.0


def _takes(device: HardwareProfile, needs: str) -> str:
    """Write what is needed beside what there is."""
    capacity = device.memory.capacity
    have = units.format_quantity(capacity.si if capacity else float("nan"), units.SIZE)
    return f"inputs and what is alive at once take {needs}, more than the {have} of {device.id}"
