"""What the providers say of schemas and no SDK type checks. Written from their documentation, apart from the service."""
import re
import urllib.parse

import jsonschema

from report import require

NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems")
GEMINI = {"type", "format", "title", "description", "enum", "items", "prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf",
          "oneOf", "properties", "additionalProperties", "required", "propertyOrdering", "nullable", "$id", "$defs", "$ref", "$anchor"}
OPENAI_STRICT = {"type", "title", "description", "properties", "required", "additionalProperties", "enum", "const", "anyOf", "items", "$ref",
                 "$defs", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"}
ANTHROPIC_STRICT = {"type", "title", "description", "properties", "required", "additionalProperties", "enum", "const", "anyOf", "allOf",
                    "items", "$ref", "$defs", "pattern", "format", "minItems", "default"}
OPENAI_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}


def positions(schema, at=""):
    """Every place of a schema that is a schema, with its pointer."""
    yield at, schema
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key in NAMED and isinstance(value, dict):
            for name, inner in value.items():
                yield from positions(inner, f"{at}/{key}/{name}")
        elif key in LISTED and isinstance(value, list):
            for index, inner in enumerate(value):
                yield from positions(inner, f"{at}/{key}/{index}")
        elif key in SINGLE and isinstance(value, (dict, bool)):
            yield from positions(value, f"{at}/{key}")


def objects(schema):
    return ((at, inner) for at, inner in positions(schema) if isinstance(inner, dict))


def kinds(schema):
    kind = schema.get("type")
    return kind if isinstance(kind, list) else [kind]


def is_valid(schema, *drafts):
    """The schema is one, by the drafts' own meta-schemas."""
    for draft in drafts:
        try:
            draft.check_schema(schema)
        except jsonschema.SchemaError as error:
            require(False, f"no {draft.__name__} schema at {error.json_path}: {error.message}")


def root_is_object(schema, *forbidden):
    require(schema.get("type") == "object", "the root's type is not object")
    for key in forbidden:
        require(key not in schema, f"the root has {key}")


def arrays_say_their_items(schema):
    for at, inner in objects(schema):
        require("array" not in kinds(inner) or isinstance(inner.get("items"), dict), f"an array without items at {at}")


def references_lead_somewhere(schema):
    for at, inner in objects(schema):
        reference = inner.get("$ref")
        require(reference is None or resolve(schema, reference) is not None, f"{reference} at {at} leads nowhere")


def resolve(schema, reference):
    """What a reference inside the document leads to."""
    if not reference.startswith("#"):
        return None
    if reference[1:2] not in ("", "/"):
        return next((inner for _, inner in objects(schema) if inner.get("$anchor") == reference[1:]), None)
    target = schema
    for part in reference[1:].split("/")[1:]:
        part = urllib.parse.unquote(part).replace("~1", "/").replace("~0", "~")
        target = target[int(part)] if isinstance(target, list) else target.get(part) if isinstance(target, dict) else None
        if target is None:
            return None
    return target


def is_recursive(schema):
    """Whether a reference leads to a place that holds it, straight or through others."""
    def reaches(inner, seen):
        for _, one in objects(inner):
            reference = one.get("$ref")
            if reference is None:
                continue
            if reference in seen or reaches(resolve(schema, reference) or {}, seen | {reference}):
                return True
        return False
    return reaches(schema, {"#"})


def property_names(schema, pattern):
    for at, inner in objects(schema):
        for name in inner.get("properties", {}):
            require(re.fullmatch(pattern, name), f"the property name {name!r} at {at or '/'}")


def only_keywords(schema, known):
    for at, inner in objects(schema):
        unknown = set(inner) - known
        require(not unknown, f"{sorted(unknown)} at {at or '/'}")


def required_are_described(schema):
    for at, inner in objects(schema):
        ghosts = set(inner.get("required", [])) - set(inner.get("properties", {}))
        require(not ghosts, f"requires {sorted(ghosts)} without describing it at {at or '/'}")


def objects_are_closed(schema):
    for at, inner in objects(schema):
        if "object" in kinds(inner) or "properties" in inner:
            require(inner.get("additionalProperties") is False, f"an open object at {at or '/'}")


def openai_strict(schema):
    """The subset of Structured Outputs."""
    only_keywords(schema, OPENAI_STRICT)
    objects_are_closed(schema)
    for at, inner in positions(schema):
        if at.endswith("/additionalProperties"):
            continue
        require(isinstance(inner, dict) and {"type", "enum", "const", "anyOf", "$ref"} & set(inner), f"anything goes at {at or '/'}")
        if "properties" in inner or "object" in kinds(inner):
            require(sorted(inner.get("required", [])) == sorted(inner.get("properties", {})), f"not every property is required at {at or '/'}")
        require(inner.get("format", "date") in OPENAI_FORMATS, f"the format {inner.get('format')} at {at}")
        require("$ref" not in inner or len(inner) == 1, f"a reference with company at {at}")
    named = [inner for _, inner in objects(schema)]
    require(sum(len(inner.get("properties", {})) for inner in named) <= 5000, "more than 5000 properties")
    require(sum(len(inner.get("enum", [])) for inner in named) <= 1000, "more than 1000 enum values")


def anthropic_strict(schema):
    """The subset of Anthropic's structured outputs, and of Bedrock's."""
    only_keywords(schema, ANTHROPIC_STRICT)
    objects_are_closed(schema)
    require(not is_recursive(schema), "a recursive schema")
    for at, inner in objects(schema):
        require(inner.get("minItems", 0) in (0, 1), f"minItems of more than one at {at}")
        require(inner.get("format", "uri") in OPENAI_FORMATS | {"uri"}, f"the format {inner.get('format')} at {at}")
        require(not any(isinstance(value, (dict, list)) for value in inner.get("enum", [])), f"an enum of objects at {at}")
        for look in (r"(?=", r"(?!", r"(?<", r"\b"):
            require(look not in inner.get("pattern", ""), f"the pattern {inner.get('pattern')} at {at}")
        require("allOf" not in inner or not any("$ref" in part for _, part in objects({"allOf": inner["allOf"]})), f"allOf with $ref at {at}")


def optional_and_unions(schema):
    """Optional parameters and parameters with a union: Anthropic counts both over a request."""
    optional = unions = 0
    for _, inner in objects(schema):
        properties = inner.get("properties", {})
        optional += len(set(properties) - set(inner.get("required", [])))
        unions += sum(1 for one in properties.values() if isinstance(one, dict) and ("anyOf" in one or isinstance(one.get("type"), list)))
    return optional, unions


def gemini(schema):
    """The keywords that are listed for JSON Schema."""
    only_keywords(schema, GEMINI)
    required_are_described(schema)
    for at, inner in objects(schema):
        require("$ref" not in inner or all(key.startswith("$") for key in inner), f"a reference with company at {at}")
        require(inner.get("properties") != {}, f"empty properties at {at or '/'}")
        values = inner.get("enum", ["x"])
        require(values and all(isinstance(value, (str, int, float)) and value != "" and not isinstance(value, bool) for value in values),
                f"the enum {values} at {at}")
        for key in LISTED:
            require(inner.get(key) != [], f"an empty {key} at {at}")
