"""Operators that ONNX defines by other operators: their bodies, as nodes."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.onnx.tensors import NUMBERS

if TYPE_CHECKING:
    from onnx import AttributeProto, FunctionProto, NodeProto, OperatorSetIdProto

# Both names of the domain of ONNX's own operators.
MAIN_DOMAINS: Final = ("", "ai.onnx")


def opsets_of(entries: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Versions by domain; that of ONNX's own operators is called ``""``."""
    return {"" if entry.domain in MAIN_DOMAINS else entry.domain: entry.version for entry in entries}


@frozen
class Body:
    """The function that an operator is; ``defaults``: values of attributes that nodes may leave out."""

    function: FunctionProto
    defaults: tuple[AttributeProto, ...] = ()

    @staticmethod
    def of_model(function: FunctionProto) -> Body:
        """A function that a model brings with it."""
        return Body(function)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the operands in the body."""
        return tuple(self.function.input)

    @property
    def opsets(self) -> dict[str, int]:
        """Versions of the operators in the body, by domain."""
        return opsets_of(self.function.opset_import)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results in the body."""
        return tuple(self.function.output)

    def nodes(self, node: NodeProto) -> list[NodeProto]:
        """The nodes in order, with the attributes of the node in the place of those that refer to them."""
        from onnx import AttributeProto, NodeProto

        given = {attribute.name: attribute for attribute in (*self.defaults, *self.function.attribute_proto)}
        given |= {attribute.name: attribute for attribute in node.attribute}
        found = []
        for part in self.function.node:
            made = NodeProto()
            made.CopyFrom(part)
            del made.attribute[:]
            for attribute in part.attribute:
                source = given.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
                if source is None:
                    continue
                held = AttributeProto()
                held.CopyFrom(source)
                held.name = attribute.name
                made.attribute.append(held)
            found.append(made)
        return found


def body_of(node: NodeProto, domain: str, opset: int, types: Sequence[ScalarType | None] | None) -> Body | None:
    """The body of an operator of ONNX, for operands of these types; None if it has none.

    ``types``: None asks whether there is one.
    """
    schema = _schema(node.op_type, opset, domain)
    if schema is None:
        return None
    if schema.has_function:
        defaults = (attribute.default_value for attribute in schema.attributes.values())
        return Body(schema.function_body, tuple(default for default in defaults if default.name))
    if not schema.has_context_dependent_function:
        return None
    if types is None:
        from onnx import FunctionProto

        return Body(FunctionProto())
    return Body(_made_for(schema, node, types))


def _made_for(schema: Any, node: NodeProto, types: Sequence[ScalarType | None]) -> FunctionProto:
    from onnx import FunctionProto, TypeProto

    given = []
    for type in types:
        proto = TypeProto()
        if type is not None:
            proto.tensor_type.elem_type = NUMBERS[type]
        given.append(proto.SerializeToString())
    found = FunctionProto()
    make = schema.get_context_dependent_function
    found.ParseFromString(make(node.SerializeToString(), given))
    return found


@functools.cache
def _schema(kind: str, opset: int, domain: str) -> Any:  # ONNX's schemas have no types
    import onnx

    try:
        return onnx.defs.get_schema(kind, opset, domain)
    except onnx.defs.SchemaError:
        return None
