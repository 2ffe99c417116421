"""``fusesim roofline``: a device's ceilings, and where a chain stands under them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fusesim import api, chains, report, units
from fusesim.cli import shared

if TYPE_CHECKING:
    from fusesim.hardware import HardwareProfile
    from fusesim.records import ChainPrice


@click.command()
@shared.device_options
@click.option("--ops", help="Also place a chain: number of ops, or names.")
@click.option("--elements", default="8192x4096", show_default=True, help="Elements of the chain's tensor.")
@click.option("--dtype", default="bf16", show_default=True, help="Element type of the chain.")
@click.option("--row", metavar="N", help="Row length of add_row and mul_row.")
@shared.json_option
def roofline(*, as_json: bool, device: str, device_file: str | None, ops: str | None, **options: Any) -> None:
    """Show a device's ceilings and ridge points, and where a chain stands before and after fusion.

    \b
    fusesim roofline --device h100-sxm
    fusesim roofline --device h100-sxm --ops 5 --dtype bf16
    """  # noqa: D301 - \b is click's mark for lines that keep their breaks
    profile = shared.chosen_device(device, device_file)
    price = None if ops is None else _price(profile, ops, options)
    ceilings = api.ceilings(profile)
    if as_json:
        shared.print_json(_record(profile, ceilings, price))
        return
    out = shared.console()
    bandwidth = units.format_quantity(profile.dram_bandwidth, units.BANDWIDTH)
    out.print(f"{profile.name}: device memory {bandwidth}", style="bold", soft_wrap=True)
    shared.print_table(out, report.roofline_table(ceilings))
    if price:
        shared.print_table(out, report.roofline_points(price))


def _price(profile: HardwareProfile, ops: str, options: dict[str, Any]) -> ChainPrice:
    return chains.price_chain(
        shared.parse_ops(ops),
        units.parse_elements(options["elements"]),
        dtype=options["dtype"],
        row=None if options["row"] is None else shared.whole(options["row"], "--row"),
        device=profile,
    )


def _record(profile: HardwareProfile, ceilings: list[api.Ceiling], price: ChainPrice | None) -> dict[str, Any]:
    """Return what --json prints."""
    record: dict[str, Any] = {
        "device": profile.id,
        "requested_as": profile.requested_as,
        "dram_bandwidth": profile.dram_bandwidth,
        "ceilings": [ceiling._asdict() for ceiling in ceilings],
    }
    return record | {"chain": price.to_dict()} if price else record
