"""How tables are printed."""

import pytest
from rich.console import Console

import fusesim
from fusesim import report
from fusesim.cli.shared import print_table


def printed(table, width):
    console = Console(width=width)
    with console.capture() as capture:
        print_table(console, table)
    return capture.get()


def device_list():
    return report.device_list([fusesim.device(name) for name in fusesim.devices()], names=False)


def chain_table():
    return report.chain_table(fusesim.price_chain(5, 8192 * 4096))


def device_figures():
    return report.device_figures(fusesim.device("h100-sxm"))


@pytest.mark.parametrize("make", [device_list, chain_table, device_figures])
@pytest.mark.parametrize("width", [20, 40, 60, 80])
def test_no_figure_is_cut_however_narrow_the_terminal(make, width):
    text = printed(make(), width)
    assert "\N{HORIZONTAL ELLIPSIS}" not in text
    for column in make().columns:
        if column.justify == "right":
            assert all(figure in text for figure in column.cells)


def test_an_id_is_never_cut():
    text = printed(device_list(), 40)
    assert [line.split()[0] for line in text.splitlines()][-len(fusesim.devices()) :] == list(fusesim.devices())


@pytest.mark.parametrize("make", [device_list, chain_table, device_figures])
def test_tables_fit_80_columns(make):
    assert max(len(line.rstrip()) for line in printed(make(), 80).splitlines()) <= 80
