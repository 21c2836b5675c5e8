"""Descriptions of executables as earlier versions wrote them."""

from __future__ import annotations

from typing import Any


def with_places(data: dict[str, Any]) -> dict[str, Any]:
    """A description that says open sizes of first dimensions alone, as those since the third format say them.

    What has another form stays as it is, for the reader to complain about.
    """
    try:
        convention = data["convention"]
        signature, interface = convention["signature"], convention["interface"]
        changed = {
            "interface": {**interface, "tensors": [_tensor(tensor) for tensor in interface["tensors"]]},
            "signature": {**signature, "symbolic": [_size(size) for size in signature.get("symbolic", ())]},
            "operands": [{**operand, "layout": _layout(operand["layout"])} for operand in convention["operands"]],
        }
        return {**data, "convention": {**convention, **changed}}
    except (AttributeError, KeyError, TypeError):
        return data


def _tensor(tensor: dict[str, Any]) -> dict[str, Any]:
    size = tensor.get("first_size")
    others = {name: value for name, value in tensor.items() if name != "first_size"}
    return others if size is None else {**others, "sizes": [size, *[None] * (tensor["dimensions"] - 1)]}


def _size(size: dict[str, Any]) -> dict[str, Any]:
    return {"most": size["most"], "places": [[name, 0] for name in size["arguments"]]}


def _layout(layout: dict[str, Any]) -> dict[str, Any]:
    first = layout.get("first")
    others = {name: value for name, value in layout.items() if name != "first"}
    return others if first is None else {**others, "extents": [first, *[None] * (len(layout["shape"]) - 1)]}
