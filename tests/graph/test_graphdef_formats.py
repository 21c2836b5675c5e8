"""Protobuf's text format and its binary format, as far as GraphDefs need them; and which format a model has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tc
import tc.graph
from tc.graph.graphdef.importer import GraphDefSource
from tc.graph.graphdef.nodes import Attribute, NodeDef
from tc.graph.graphdef.schema import GRAPH, NODE, TENSOR
from tc.graph.graphdef.text import parse
from tc.graph.protobuf.schema import Kind, Schema
from tc.graph.protobuf.wire import Encoded, fields
from tests.graph.comparison import f32
from tests.graph.graphdefs import (
    Listed,
    Node,
    Shape,
    Type,
    binary,
    const,
    encoded,
    node,
    placeholder,
    text,
    varint,
)
from tests.graph.mnist_graphdef import DATA, FILES

NODES: list[Node] = [
    placeholder("x", shape=(-1, 3)),
    const("c", [[1.5, -2, 3]], "float32"),
    node("y", "AddV2", "x", "c:0", "^x", T=Type("float32")),
    node(
        "z", "Something", "y", i=-7, f=0.5, b=True, s='a"\n\\', shape=Shape((2, -1)), unknown=Shape(None), ints=[1, -2],
        texts=["a", "é"], none=[], bool_tensor=Listed("bool", (2,), "bool_val", [True, False]),
    ),
]  # fmt: skip


def nodes_of(source: GraphDefSource) -> dict[str, NodeDef]:
    return {name: source.nodes[name] for name in source.nodes}


def read(data: bytes | str) -> GraphDefSource:
    return GraphDefSource(Encoded(memoryview(data)) if isinstance(data, bytes) else parse(data))


def values(definition: NodeDef) -> dict[str, Any]:
    """Attributes with arrays as lists, which can be compared."""
    found = {}
    for key, attribute in definition.attributes.items():
        held = attribute.value
        found[key] = (attribute.kind, held.array().tolist() if hasattr(held, "array") else held)
    return found


def test_both_formats_hold_the_same() -> None:
    one, other = nodes_of(read(binary(NODES))), nodes_of(read(text(NODES)))
    assert list(one) == list(other) == ["x", "c", "y", "z"]
    for name, found in one.items():
        same = other[name]
        assert (found.operator, found.inputs, found.controls) == (same.operator, same.inputs, same.controls)
        assert values(found) == values(same)


def test_attributes_are_typed() -> None:
    found = read(binary(NODES)).nodes["z"]
    assert values(found) == {
        "i": ("i", -7),
        "f": ("f", 0.5),
        "b": ("b", True),
        "s": ("s", b'a"\n\\'),
        "shape": ("shape", (2, None)),
        "unknown": ("shape", None),
        "ints": ("list(i)", (1, -2)),
        "texts": ("list(s)", (b"a", "é".encode())),
        "none": ("list()", ()),
        "bool_tensor": ("tensor", [True, False]),
    }
    assert read(binary(NODES)).nodes["y"].controls == ("x",)
    with pytest.raises(AttributeError):
        found.name = "other"  # type: ignore[misc]  # it is frozen


# --- text ------------------------------------------------------------------------------------------------


def test_ways_to_write_text() -> None:
    """Comments, separators, angle brackets, lists, parts of strings, unknown fields, and a byte order mark."""
    written = """\ufeff# a comment
    node: < name: 'x'; op: "Place" 'holder', attr { key: "dtype" value < type: 1 > } >  # and one more
    node {
      name: "c" op: "Const"
      attr { key: "value" value { tensor {
        dtype: DT_FLOAT tensor_shape { dim { size: 0x3 } dim: { size: 02 } }
        float_val: [1, -2.5f, .5, 1e2, inf]
        float_val: - inf
      } } }
      something_new { a: 1 b { c: ["d", "e"] } list: [{f: g}, <>] nothing: [] }
    }
    node { name: "s" op: "Some\\x74hing" attr { key: "s" value { s: "\\101\\n\\u00e9\\U0001F600\\?" } } }
    versions { producer: 26 }
    """
    source = read(written.removeprefix("\ufeff"))
    assert source.nodes["x"].operator == "Placeholder"
    assert source.nodes["s"].operator == "Something"
    assert source.nodes["s"].attributes["s"] == Attribute("s", "A\né😀?".encode())
    model = tc.graph.load(written)
    found = model.reference(["c"], {})["c"]
    np.testing.assert_array_equal(found, f32([[1, -2.5], [0.5, 100], [np.inf, -np.inf]]))


@pytest.mark.parametrize(
    ("word", "value"),
    [("true", True), ("True", True), ("t", True), ("1", True), ("false", False), ("f", False), ("0", False)],
)
def test_words_for_truth(word: str, value: bool) -> None:
    found = read(f'node {{ name: "x" op: "A" attr {{ key: "b" value {{ b: {word} }} }} }}').nodes["x"]
    assert found.attributes["b"] == Attribute("b", value)


def test_numbers_are_rounded_as_they_are_in_binary_form() -> None:
    found = read('node { name: "x" op: "A" attr { key: "f" value { f: 0.1 } } attr { key: "g" value { f: 1e99 } } }')
    assert found.nodes["x"].attributes["f"].value == float(np.float32(0.1))
    assert found.nodes["x"].attributes["g"].value == np.inf


BAD_TEXTS = [
    ('node { name: "x" op }', r"1:21: this is not protobuf's text format"),
    ("node {", r"1:6: this is not protobuf's text format"),
    ("node {\n  name: @\n}", r"2:9: this is not protobuf's text format"),
    ('node { name: "x', r"1:14: this is not protobuf's text format"),
    ("node: 3", r"line 1: `node` is a message, and has `3`"),
    ("node {\n name { } }", r"line 2: `name` is a text, and has a message"),
    ("node { name: 3 }", r"line 1: `name` is a text, and has 3"),
    (r'node { name: "\377" }', r'line 1: `name` is a text, and has "\\377"'),
    (r'node { name: "\q" }', r'line 1: `name` is a text, and has "\\q"'),
    (r'node { name: "\ud800" }', r'line 1: `name` is a text'),
    ("versions { producer: 1.5 }", r"line 1: `producer` is a whole number, and has 1.5"),
    ("versions { producer: 9223372036854775808 }", r"`producer` is a whole number, and has 9223372036854775808"),
    (f"versions {{ producer: {'9' * 5000} }}", r"line 1: `producer` is a whole number"),
    ("versions { producer: 08 }", r"line 1: `producer` is a whole number, and has 08"),
    ("", r"the graph has no nodes"),
    ("node { }", r"a node has no name"),
    ('node { name: "x" }', r"node `x` has no operator"),
    ('node { name: "x" op: "A" } node { name: "x" op: "B" }', r"two nodes are called `x`"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "complaint"), BAD_TEXTS)
def test_texts_that_are_refused(written: str, complaint: str) -> None:
    with pytest.raises(tc.GraphError, match=complaint):
        read(written)


BAD_ATTRIBUTES = [
    ("b: 2", r"line 3: `b` is true or false, and has 2"),
    ("f: a", r"line 3: `f` is a number of 32 bits, and has a"),
    ("type: DT_NOTHING", r"line 3: `type` is the name of a type, and has DT_NOTHING"),
    ("tensor { uint64_val: -1 }", r"line 3: `uint64_val` is a whole number that is not negative, and has -1"),
    ("shape: 3", r"line 3: `shape` is a message, and has `3`"),
]


@pytest.mark.parametrize(("written", "complaint"), BAD_ATTRIBUTES)
def test_attributes_that_are_refused_when_their_node_is_read(written: str, complaint: str) -> None:
    source = read(f'node {{ name: "x" op: "A" attr {{\nkey: "k" value {{\n{written} }} }} }}')
    with pytest.raises(tc.GraphError, match=rf"node `x` \(A\): {complaint}"):
        source.nodes["x"]


def test_deep_texts() -> None:
    deep = "a{" * 100_000 + "}" * 100_000
    assert read('node { name: "x" op: "A" ' + deep + "}").nodes["x"].operator == "A"


# --- binary ----------------------------------------------------------------------------------------------


def tensor(data: bytes) -> dict[str, list[Any]]:
    found = Encoded(memoryview(data)).read(TENSOR)
    return {name: found.all(name) for name in TENSOR.by_name if found.all(name)}


def test_numbers_in_lists_may_be_packed() -> None:
    packed = np.array([1.5, -2], "<f4").tobytes()
    assert tensor(varint(5 << 3 | 2) + varint(8) + packed) == {"float_val": [1.5, -2]}
    mixed = varint(5 << 3 | 5) + packed[:4] + varint(5 << 3 | 2) + b"\x04" + packed[4:]
    assert tensor(mixed) == {"float_val": [1.5, -2]}
    numbers = varint(300) + varint(-1) + varint(0)
    assert tensor(varint(7 << 3 | 2) + varint(len(numbers)) + numbers) == {"int_val": [300, -1, 0]}
    assert tensor(varint(17 << 3) + varint(-1)) == {"uint64_val": [2**64 - 1]}
    assert tensor(varint(6 << 3 | 2) + b"\x08" + np.array([2.5], "<f8").tobytes()) == {"double_val": [2.5]}
    assert tensor(varint(11 << 3 | 2) + b"\x02\x01\x00") == {"bool_val": [True, False]}


def test_what_is_unknown_is_skipped() -> None:
    unknown = (
        varint(99 << 3)
        + b"\x05"
        + varint(98 << 3 | 1)
        + bytes(8)
        + varint(97 << 3 | 5)
        + bytes(4)
        + varint(96 << 3 | 2)
        + b"\x01a"
    )
    odd = varint(1 << 3 | 2) + b"\x01a"  # a type that is encoded as a text
    assert tensor(unknown + odd + varint(1 << 3) + b"\x03") == {"dtype": [3]}


BAD_BYTES = [
    (b"\x0a", r"the bytes end within a number, or a number is too long"),
    (b"\x0a" + b"\xff" * 11, r"the bytes end within a number, or a number is too long"),
    (b"\x0a\x05abc", r"field 1 announces 5 bytes, and 3 are left"),
    (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", r"field 1 announces 18446744073709551615 bytes, and 0 are left"),
    (b"\x0d\x01", r"field 1 announces 4 bytes, and 1 are left"),
    (b"\x09\x01", r"field 1 announces 8 bytes, and 1 are left"),
    (b"\x0b", r"a field has the wire type 3, which GraphDefs do not use"),
    (b"\x00\x01", r"a field has the number 0, which no message has"),
    (varint(1 << 32) + b"\x01", r"a field has the number 536870912, which no message has"),
]


@pytest.mark.parametrize(("data", "complaint"), BAD_BYTES)
def test_bytes_that_are_refused(data: bytes, complaint: str) -> None:
    with pytest.raises(tc.GraphError, match=complaint):
        list(fields(memoryview(data)))


def test_names_are_texts() -> None:
    with pytest.raises(tc.GraphError, match="`name` is no text in UTF-8"):
        Encoded(memoryview(b"\x0a\x01\xff")).read(NODE)


def test_numbers_of_half_a_width() -> None:
    with pytest.raises(tc.GraphError, match="`float_val` has 3 bytes, which are not those of numbers of 4 bytes"):
        tensor(varint(5 << 3 | 2) + b"\x03abc")


def test_bytes_of_a_tensor_are_as_many_as_it_announces() -> None:
    shape = (2, "tensor_shape", [(2, "dim", [(1, "size", 1 << 35)])])
    fields_of = [(1, "dtype", 1), shape, (4, "tensor_content", b"abcd")]
    attribute = (5, "attr", [(1, "key", "value"), (2, "value", [(8, "tensor", fields_of)])])
    data = encoded([(1, "node", [(1, "name", "c"), (2, "op", "Const"), attribute])])
    with pytest.raises(tc.GraphError, match=r"node `c` \(Const\): a tensor announces 137438953472 bytes, and has 4"):
        tc.graph.load(data).reference(["c"], {})


def test_nothing_is_allocated_that_is_only_announced() -> None:
    """A terabyte of ones, of which one is kept."""
    ones = Listed("float32", (1 << 19, 1 << 18), "float_val", [1.0])
    graph = [node("c", "Const", value=ones), const("at", [0, 5], "int32"), const("size", [1, 2], "int32")]
    model = tc.graph.load(binary([*graph, node("y", "Slice", "c", "at", "size")]))
    np.testing.assert_array_equal(model.reference(["y"], {})["y"], np.ones((1, 2), np.float32))


def attempt(data: bytes) -> str:
    """What becomes of a damaged file: an error, or a graph."""
    try:
        model = tc.graph.load(data)
        assert model.inputs is not None
        assert model.outputs is not None
        model.graph()
    except tc.GraphError:
        return "error"
    return "graph"


@pytest.mark.parametrize("name", FILES)
def test_truncated_files(name: str) -> None:
    """The smaller one at every place."""
    data = (DATA / f"{name}.pb").read_bytes()
    whole = list(tc.graph.load(data)._source.nodes)  # type: ignore[attr-defined]  # of GraphDefs
    for length in range(0, len(data), 1 if len(data) < 2000 else 13):
        if attempt(data[:length]) == "graph":
            assert set(tc.graph.load(data[:length])._source.nodes) <= set(whole)  # type: ignore[attr-defined]
    written = (DATA / f"{name}.pbtxt").read_bytes()
    for length in range(0, len(written), len(written) // 97):
        attempt(written[:length])


@pytest.mark.parametrize("suffix", ["pb", "pbtxt"])
@pytest.mark.parametrize("name", FILES)
def test_damaged_files(name: str, suffix: str) -> None:
    data = (DATA / f"{name}.{suffix}").read_bytes()
    random = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(data)
        for place in random.integers(len(data), size=random.integers(1, 4)):
            damaged[place] = random.integers(256)
        attempt(bytes(damaged))


# --- protobuf itself -------------------------------------------------------------------------------------


def messages_of_protobuf() -> Any:
    """The class of a GraphDef that protobuf makes of the schema."""
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="graph.proto", syntax="proto3", package="test")
    kinds = {Kind.INTEGER: 3, Kind.UNSIGNED: 4, Kind.BOOLEAN: 8, Kind.FLOAT: 2, Kind.DOUBLE: 1}
    kinds |= {Kind.BYTES: 12, Kind.TEXT: 9}
    made: set[str] = set()

    def add(schema: Schema) -> None:
        if schema.name in made:
            return
        made.add(schema.name)
        inner = file.message_type.add(name=schema.name)
        if schema.one:
            inner.oneof_decl.add(name="value")
        for number, field in schema.by_number.items():
            one = inner.field.add(name=field.name, number=number, label=3 if field.repeated else 1)
            if schema.one:
                one.oneof_index = 0
            if isinstance(field.kind, Schema):
                one.type, one.type_name = 11, f".test.{field.kind.name}"
                add(field.kind)
            elif field.kind is Kind.TYPE:
                one.type, one.type_name = 14, ".test.DataType"
            else:
                one.type = kinds[field.kind]

    add(GRAPH)
    types = file.enum_type.add(name="DataType")
    for name, code in (("DT_INVALID", 0), ("DT_FLOAT", 1), ("DT_INT32", 3), ("DT_BOOL", 10)):
        types.value.add(name=name, number=code)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("test.GraphDef"))


@pytest.mark.parametrize("nodes", [NODES, *FILES.values()])
def test_protobuf_reads_what_the_tests_write(nodes: list[Node]) -> None:
    make = messages_of_protobuf()
    from google.protobuf import text_format

    assert make.FromString(binary(nodes)) == text_format.Parse(text(nodes), make())


@pytest.mark.parametrize("nodes", [NODES, *FILES.values()])
def test_what_protobuf_writes_is_read(nodes: list[Node]) -> None:
    """With numbers of lists packed, and text in one line."""
    graph = messages_of_protobuf().FromString(binary(nodes))
    from google.protobuf import text_format

    expected = {name: values(found) for name, found in nodes_of(read(binary(nodes))).items()}
    written = [text_format.MessageToString(graph), text_format.MessageToString(graph, as_one_line=True)]
    for data in (graph.SerializeToString(), *written):
        assert {name: values(found) for name, found in nodes_of(read(data)).items()} == expected
