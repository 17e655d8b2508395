# SPDX-License-Identifier: MIT OR Apache-2.0
"""UBI on raw NAND: how long an attach takes, and what read caches gain."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypedDict, Unpack

from ._given import PathLike, source
from ._questions import _ask
from ._results import Results

__all__ = ["Sizes", "attach", "replay", "reproduce"]


class Sizes(TypedDict, total=False):
    """Sizes of an image; those not given are read from it. Bytes, or texts such as ``"128K"``."""

    #: Erase block size.
    peb_size: int | str | None
    #: Page size.
    page_size: int | str | None
    #: Sub-page size.
    subpage_size: int | str | None
    #: Bytes of the spare area behind each page.
    oob: int | None
    #: Number of erase blocks of the device.
    pebs: int | None


def attach(image: PathLike, *, cost: PathLike | None = None, scan: bool = False, **sizes: Unpack[Sizes]) -> Results:
    """What UBI finds in an image, and how long its attach takes, on chips with sub-page reads and without.

    ``cost`` is what reads cost: a kind of NAND, such as ``"slc-2k"``, or a file. ``scan`` reads all headers even if
    there is a fastmap. What was found is ``document["configuration"]["streams"]``.
    """
    return _ask("ubi-attach", [source(image, "")], {"cost": cost, "scan": scan, **sizes}, {})


def replay(
    streams: PathLike | Iterable[PathLike],
    *,
    cache: Sequence[str] = (),
    lines: Sequence[int] = (61,),
    pressure: PathLike | None = None,
    page_size: int | str | None = None,
    peb_size: int | str | None = None,
    lenient: bool = False,
    cost: PathLike | None = None,
) -> Results:
    """Replays UBI read streams through read caches of so many ``lines``.

    ``cache`` are names such as ``"lru"`` and ``"peb-hash"``. ``pressure`` is a file of changes of the memory budget.
    Sizes are bytes, or texts such as ``"2K"``. ``lenient`` leaves out lines that cannot be read.
    """
    files = [streams] if isinstance(streams, str) or not isinstance(streams, Iterable) else list(streams)
    options = {
        "cache": cache,
        "lines": lines,
        "pressure": pressure,
        "page_size": page_size,
        "peb_size": peb_size,
        "lenient": lenient,
        "cost": cost,
    }
    return _ask("ubi-replay", [source(file, "") for file in files], options, {})


def reproduce(
    traces: PathLike | None = None,
    *,
    image: Iterable[PathLike] = (),
    pebs: int | None = None,
    boot_list: PathLike | None = None,
    cost: PathLike | None = None,
) -> Results:
    """The published table of read caches beside the model, with a folder of recorded streams and with images.

    ``pebs`` is the number of erase blocks of the device of the images; ``boot_list`` a list of the files that a boot
    reads, one path a line.
    """
    options = {"traces": traces, "image": image, "pebs": pebs, "boot_list": boot_list, "cost": cost}
    return _ask("reproduce", [source("ubi", "")], options, {})
