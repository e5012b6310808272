"""Arguments as a model would send them: read off a declared schema, and off nothing else."""
from schema_rules import resolve

FORMATS = {"date-time": "2026-11-30T09:00:00Z", "date": "2026-11-30", "time": "09:00:00Z", "duration": "P1D", "email": "ann@example.com",
           "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "uuid": "6fa459ea-ee8a-4ca4-894e-db77e160355e",
           "uri": "https://example.com/", "uri-reference": "/a", "int32": 1, "regex": "a"}
PATTERNS = {"^[A-Z]{3}$": "CHF", "^\\d{4}$": "2026", "^.+$": "x", "^#[0-9a-f]{6}$": "#00ff00"}


def arguments(schema, full):
    """The required properties alone, or all of them."""
    return _value(schema or {"type": "object"}, schema or {}, full, 0) or {}


def _value(schema, root, full, depth):
    if not isinstance(schema, dict) or not schema:
        return "anything"
    if "$ref" in schema:
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _value({**(resolve(root, schema["$ref"]) or {}), **beside}, root, full, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    schema = _with_parts(schema, root)
    for union in ("anyOf", "oneOf"):
        if schema.get(union):
            branches = [one for one in schema[union] if one is not False]
            nulls = [one for one in branches if isinstance(one, dict) and one.get("type") == "null"]
            chosen = nulls[0] if nulls and (not full or depth > 8) else branches[0]
            beside = {key: value for key, value in schema.items() if key != union}
            if isinstance(chosen, dict) and chosen.get("type") == "null":
                return None
            return _value(_merged(beside, chosen if isinstance(chosen, dict) else {}), root, full, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        if "null" in kind and (not full or depth > 8):
            return None
        kind = next((one for one in kind if one != "null"), "null")
    if kind is None:
        kind = _implied(schema)
    return {"object": _object, "array": _array, "string": _string, "integer": _number, "number": _number,
            "boolean": lambda *_: True, "null": lambda *_: None}[kind](schema, root, full, depth)


def _implied(schema):
    for key, kind in (("properties", "object"), ("required", "object"), ("items", "array"), ("prefixItems", "array"), ("minimum", "number")):
        if key in schema:
            return kind
    return "string"


def _with_parts(schema, root):
    whole = {key: value for key, value in schema.items() if key != "allOf"}
    for part in schema.get("allOf", []):
        if isinstance(part, dict):
            whole = _merged(whole, {**(resolve(root, part["$ref"]) or {}), **part} if "$ref" in part else part)
    whole.pop("$ref", None)
    return whole


def _merged(one, other):
    whole = dict(one)
    for key, value in other.items():
        if key == "properties":
            whole[key] = {**whole.get(key, {}), **value}
        elif key == "required":
            whole[key] = list(dict.fromkeys(whole.get(key, []) + value))
        else:
            whole.setdefault(key, value)
    return whole


def _object(schema, root, full, depth):
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    names = [name for name in properties if properties[name] is not False and (name in required or (full and depth < 5))]
    found = {name: _value(properties[name], root, full, depth + 1) for name in names}
    for name in required:
        found.setdefault(name, "described nowhere")
    more = schema.get("additionalProperties")
    for number in range(max(schema.get("minProperties", 0), 1 if full and isinstance(more, dict) and depth < 5 else 0) - len(found)):
        found[f"key{number}"] = _value(more, root, full, depth + 1)
    return found


def _array(schema, root, full, depth):
    tuples = schema.get("prefixItems", [])
    found = [_value(one, root, full, depth + 1) for one in tuples]
    want = max(schema.get("minItems", 0), 1 if full and depth < 5 and not tuples else 0)
    items = schema.get("items")
    if items is not False:
        while len(found) < want:
            one = _value(items, root, full, depth + 1)
            found.append(f"{one} {len(found)}" if isinstance(one, str) and found and schema.get("uniqueItems") else one)
    return found[:schema.get("maxItems", len(found))]


def _string(schema, *_):
    if schema.get("pattern") in PATTERNS:
        return PATTERNS[schema["pattern"]]
    text = FORMATS.get(schema.get("format"), "text")
    return text if schema.get("format") else text.ljust(schema.get("minLength", 0), "x")[:schema.get("maxLength", 10_000)]


def _number(schema, *_):
    step = schema.get("multipleOf", 1)
    least = schema.get("minimum", schema["exclusiveMinimum"] + step if "exclusiveMinimum" in schema else None)
    if least is None:
        most = schema.get("maximum", schema["exclusiveMaximum"] - step if "exclusiveMaximum" in schema else step)
        return min(step, most)
    return -(-least // step) * step
