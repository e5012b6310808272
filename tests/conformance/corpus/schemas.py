"""Argument schemas as people and their generators write them, each for one thing that some provider minds."""

DRAFT_04 = "http://json-schema.org/draft-04/schema#"
DRAFT_07 = "http://json-schema.org/draft-07/schema#"
NAMES = ["filter[name]", "filter.name", "user-id", "@type", "$top", "first name", "9th", "größe", "a/b", "a~b", "x" * 70, "_", "type", "properties",
         "required", "enum", "items", "title", "format", "description"]


def text(**more):
    return {"type": "string", **more}


def record(required=(), /, **properties):
    """An object; `required` is left out where nothing is."""
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def closed(required=(), /, **properties):
    return {**record(required, **properties), "additionalProperties": False}


def of(name, schema):
    """One property of this schema."""
    return record([name], **{name: schema})


def deep(levels):
    schema = text()
    for _ in range(levels):
        schema = record(["inner"], inner=schema)
    return schema


TREE = {"type": "object", "properties": {"label": text(), "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["label"]}
BY_TICKET = record(["kind", "ticket"], kind={"const": "ticket"}, ticket=text())
BY_URL = record(["kind", "url"], kind={"const": "url"}, url=text(format="uri"))

SCHEMAS = {
    # none, or nearly none
    "nothing_said": {},
    "no_properties": {"type": "object"},
    "empty_properties": {"type": "object", "properties": {}},
    "empty_and_closed": {"type": "object", "properties": {}, "additionalProperties": False},
    "empty_required": {"type": "object", "properties": {"q": text()}, "required": []},
    "only_a_map": {"type": "object", "additionalProperties": text()},
    "root_type_left_out": {"properties": {"q": text()}, "required": ["q"]},
    # plain ones
    "plain": closed(["city"], city=text(description="The city")),
    "optional": record(["city"], city=text(), unit=text(enum=["C", "F"]), days={"type": "integer", "minimum": 1, "maximum": 14}),
    "all_optional": record(a=text(), b={"type": "number"}, c={"type": "boolean"}),
    "titles_and_defaults": {**record(["q"], q=text(title="Q", default="x"), n={"type": "integer", "default": 3, "examples": [3, 4]}), "title": "Search"},
    "many_optional": record(**{f"p{number}": text() for number in range(30)}),
    # unions at the root
    "root_one_of": {"oneOf": [BY_TICKET, BY_URL]},
    "root_any_of": {"type": "object", "anyOf": [record(["a"], a=text()), record(["b"], b=text())]},
    "root_any_of_required": {**record(a=text(), b=text()), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "root_all_of": {"allOf": [{"$ref": "#/$defs/base"}, record(["extra"], extra=text())], "$defs": {"base": record(["id"], id=text())}},
    "root_ref": {"$ref": "#/$defs/args", "$defs": {"args": record(["q"], q=text())}},
    "root_not": {**record(["q"], q=text()), "not": {"required": ["forbidden"]}},
    "root_if": {**record(["mode"], mode=text(enum=["a", "b"]), extra=text()), "if": {"properties": {"mode": {"const": "b"}}}, "then": {"required": ["extra"]}},
    "root_dependent": {**record(card=text(), address=text()), "dependentRequired": {"card": ["address"]}},
    # unions inside
    "any_of": of("target", {"anyOf": [text(), {"type": "integer"}]}),
    "one_of_objects": of("target", {"oneOf": [BY_TICKET, BY_URL]}),
    "discriminated": of("target", {"oneOf": [{"$ref": "#/$defs/t"}], "discriminator": {"propertyName": "kind"}}) | {"$defs": {"t": BY_TICKET}},
    "all_of": of("name", {"allOf": [text(), {"minLength": 2}]}),
    "all_of_ref": of("who", {"allOf": [{"$ref": "#/$defs/p"}], "description": "Who"}) | {"$defs": {"p": record(["n"], n=text())}},
    "not_inside": of("word", {"type": "string", "not": {"const": "no"}}),
    "optional_object": record(where=closed(["city"], city=text(), zone=text())),
    "pydantic_optional": record(["n"], n=text(), limit={"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}),
    # references
    "refs": of("from", {"$ref": "#/$defs/place"}) | {"$defs": {"place": record(["lat"], lat={"type": "number"}, lon={"type": "number"})}},
    "ref_with_company": of("from", {"$ref": "#/$defs/place", "description": "The start"}) | {"$defs": {"place": record(["lat"], lat={"type": "number"})}},
    "ref_chain": of("a", {"$ref": "#/$defs/one"}) | {"$defs": {"one": {"$ref": "#/$defs/two"}, "two": text(maxLength=9)}},
    "ref_to_property": record(["a"], a=text(), b={"$ref": "#/properties/a"}),
    "ref_escaped": of("a", {"$ref": "#/$defs/a~1b%20c"}) | {"$defs": {"a/b c": text()}},
    "anchor": of("a", {"$ref": "#part"}) | {"$defs": {"p": {"$anchor": "part", "type": "string"}}},
    "recursive": of("root", {"$ref": "#/$defs/node"}) | {"$defs": {"node": TREE}},
    "recursive_root": record(["label"], label=text(), child={"$ref": "#"}),
    "recursive_both": of("a", {"$ref": "#/$defs/a"}) | {"$defs": {"a": record(n=text(), b={"$ref": "#/$defs/b"}), "b": record(n=text(), a={"$ref": "#/$defs/a"})}},
    # arrays
    "array_without_items": of("list", {"type": "array"}),
    "array_any_items": of("list", {"type": "array", "items": {}}),
    "array_true_items": of("list", {"type": "array", "items": True}),
    "array_bounds": of("list", {"type": "array", "items": text(), "minItems": 2, "maxItems": 5, "uniqueItems": True}),
    "array_of_arrays": of("rows", {"type": "array", "items": {"type": "array", "items": {"type": "number"}}}),
    "array_contains": of("list", {"type": "array", "items": text(), "contains": {"const": "text"}}),
    "tuple": of("pair", {"type": "array", "prefixItems": [text(), {"type": "integer"}], "items": False, "minItems": 2}),
    "tuple_open": of("pair", {"type": "array", "prefixItems": [text()], "items": {"type": "integer"}}),
    # older drafts
    "draft07_tuple": {"$schema": DRAFT_07, **of("pair", {"type": "array", "items": [text(), {"type": "integer"}], "additionalItems": False})},
    "draft07_definitions": {"$schema": DRAFT_07, **of("op", {"$ref": "#/definitions/op"}), "definitions": {"op": text(enum=["a", "b"])}},
    "draft07_dependencies": {"$schema": DRAFT_07, **record(a=text(), b=text()), "dependencies": {"a": ["b"]}},
    "draft04_bounds": {"$schema": DRAFT_04, **of("n", {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 9})},
    # values
    "enum_numbers": of("level", {"enum": [1, 2, 3]}),
    "enum_typed_numbers": of("level", {"type": "integer", "enum": [1, 2, 3]}),
    "enum_mixed": of("level", {"enum": ["low", 2, None, True]}),
    "enum_empty_text": of("mode", text(enum=["on", ""])),
    "enum_with_null": of("unit", {"type": ["string", "null"], "enum": ["C", "F", None]}),
    "enum_objects": of("preset", {"enum": [{"w": 1}, {"w": 2}]}),
    "enum_long": of("code", text(enum=[f"code-{number}" for number in range(300)])),
    "const_text": of("kind", {"const": "order"}),
    "const_true": of("sure", {"const": True}),
    "const_number": of("version", {"type": "integer", "const": 2}),
    "booleans_only": of("sure", {"type": "boolean", "enum": [True]}),
    "numbers": of("n", {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10, "multipleOf": 2}),
    "big_numbers": of("n", {"type": "integer", "minimum": 9007199254740993}),
    "texts": record(["code"], code=text(pattern="^[A-Z]{3}$"), note=text(minLength=2, maxLength=80)),
    "formats": record(**{name.replace("-", "_"): text(format=name) for name in ("date-time", "date", "time", "email", "uri", "uuid", "ipv4", "hostname", "duration")}),
    "format_of_ones_own": of("q", text(format="markdown")),
    "content": of("file", text(contentEncoding="base64", contentMediaType="image/png")),
    # null
    "null_list": record(["a"], a={"type": ["string", "null"]}, b={"type": ["integer", "null"], "minimum": 1}),
    "many_types": of("value", {"type": ["string", "number", "boolean"]}),
    "null_only": record(["q"], q=text(), nothing={"type": "null"}),
    "nullable_of_openapi": record(["q"], q=text(nullable=True)),
    "null_array": record(["tags"], tags={"type": ["array", "null"], "items": text()}),
    # open objects
    "map_of_text": of("labels", {"type": "object", "additionalProperties": text()}),
    "map_of_anything": of("labels", {"type": "object", "additionalProperties": True}),
    "map_beside": of("labels", {**record(["id"], id=text()), "additionalProperties": {"type": "integer"}}),
    "pattern_properties": of("headers", {"type": "object", "patternProperties": {"^x-": text()}, "additionalProperties": False}),
    "property_names": of("labels", {"type": "object", "additionalProperties": text(), "propertyNames": {"pattern": "^[a-z0-9]+$"}, "minProperties": 1}),
    "unevaluated": {**record(["q"], q=text()), "unevaluatedProperties": False},
    "free_object": of("payload", {"type": "object"}),
    "anything": of("payload", {}),
    "anything_true": of("payload", True),
    "false_property": record(["q"], q=text(), never=False),
    # names
    "odd_names": record(NAMES, **{name: text() for name in NAMES}),
    "empty_name": record(["", "q"], **{"": text(), "q": text()}),
    "names_that_meet": record(["a.b", "a b", "a_b"], **{"a.b": text(), "a b": text(), "a_b": text()}),
    "odd_names_inside": of("where", closed(["$lat", "lat"], **{"$lat": text(), "lat": text(), "filter[x]": text()})),
    "named_like_keywords": record(["$ref", "$defs"], **{"$ref": text(), "$defs": text(), "anyOf": text(), "const": text(), "nullable": text()}),
    "required_ghost": {"type": "object", "properties": {"q": text()}, "required": ["q", "ghost"]},
    # size and shape
    "deep": deep(9),
    "deeper": deep(14),
    "wide": record(**{f"field_{number:03}": text(description="A field") for number in range(150)}),
    "read_and_write_only": record(["q"], q=text(writeOnly=True), id=text(readOnly=True)),
    "comments": {**record(["q"], q=text(deprecated=True, **{"$comment": "old"})), "$comment": "for people"},
    "vendor_keywords": record(["q"], q=text(**{"x-order": 1, "markdownDescription": "**q**"})),
    "header_mark": record(["q"], q=text(**{"x-mcp-header": "Q"})),
    "unicode": record(["città"], città=text(description="Zürich, 東京 🗼", enum=["Zürich", "東京"])),
    "description_empty": record(["q"], q=text(description="")),
    "property_ordering": {**record(["b"], b=text(), a=text()), "propertyOrdering": ["b", "a"]},
}
