"""Tools with every option alone and with the others: whatever a provider refuses together has to be kept apart."""
import itertools

from sample import arguments

from .schemas import SCHEMAS, closed, record, text

OUTPUT = {"type": "object", "properties": {"celsius": {"type": "number"}, "sky": {"enum": ["clear", None]}}, "required": ["celsius"]}
# What authors write for one provider before the service knows it. `name` is taken already and must not be replaced.
PROVIDER_OPTIONS = {
    "anthropic": {"cache_control": {"type": "ephemeral"}, "eager_input_streaming": True, "name": "replaced"},
    "openai-chat": {"type": "replaced", "function": {"name": "replaced"}},
    "openai-responses": {"async": True, "name": "replaced"},
    "gemini": {"behavior": "BLOCKING", "name": "replaced"},
    "bedrock": {"cachePoint": {"type": "default"}, "toolSpec": {"name": "replaced"}},
    "cohere": {"function": {"name": "replaced"}},
    "mcp": {"icons": [{"src": "https://example.com/i.png"}], "_meta": {"example.com/x": 1}, "annotations": {"title": "An older place"}},
}
ANNOTATIONS = {"title": "Weather", "read_only": True, "destructive": False, "idempotent": True, "open_world": False}
ALONE = {
    "strict": [True],
    "input_examples": [True],
    "defer_loading": [True],
    "eager_input_streaming": [True, False],
    "allowed_callers": [[], ["human"], ["code_execution"], ["human", "code_execution"]],
    "result_type": ["text", "structured"],
    "output_schema": [OUTPUT, {"type": "array", "items": text()}, {"$ref": "#/$defs/o", "$defs": {"o": OUTPUT}}, {}, {"type": ["object", "null"]},
                      {"oneOf": [OUTPUT, {"type": "object", "properties": {"error": text()}}]}],
    "provider_options": [PROVIDER_OPTIONS, *({name: value} for name, value in PROVIDER_OPTIONS.items())],
    "annotations": [ANNOTATIONS, {"title": "Weather"}, {"destructive": True, "open_world": None}],
    "tags": [["weather", "outdoor"]],
    "concurrent": [False],
    "max_result_chars": [100, "unlimited"],
    "timeout_ms": [5000],
    "enabled": [False],
}
COMBINED = {
    "strict": [False, True],
    "input_examples": [None, True],
    "defer_loading": [False, True],
    "allowed_callers": [None, [], ["human"], ["code_execution"], ["human", "code_execution"]],
    "rest": [{}, {"eager_input_streaming": True, "result_type": "structured", "output_schema": OUTPUT, "provider_options": PROVIDER_OPTIONS, "annotations": ANNOTATIONS}],
}
BASES = {
    "closed": closed(["city"], city=text()),
    "partly": record(["city"], city=text(), unit={"type": "string", "enum": ["C", "F"]}, days={"type": "integer", "minimum": 1}),
    "loop": SCHEMAS["recursive"],
}


def tool(name, schema, **options):
    """A tool's body; `input_examples: True` stands for examples that fit the schema."""
    if options.get("input_examples") is True:
        options["input_examples"] = [arguments(schema, False), arguments(schema, True)]
    options = {key: value for key, value in options.items() if value is not None}
    return {"name": name, "description": f"Tool {name}.", "input_schema": schema, "handler": "hook", **options}


def schema_tools():
    """Every schema as it is, and with what a provider adapts it for."""
    for name, schema in SCHEMAS.items():
        yield tool(f"plain_{name}"[:64], schema)
        yield tool(f"strict_{name}"[:64], schema, strict=True)
        yield tool(f"code_{name}"[:64], schema, strict=True, input_examples=_examples(name), allowed_callers=["human", "code_execution"], output_schema=schema)


def option_tools():
    """Every value of every option alone, then the product of those that meet in a declaration."""
    for option, values in ALONE.items():
        for number, value in enumerate(values):
            yield tool(f"alone_{option}_{number}", BASES["partly"], **{option: value})
    for base, schema in BASES.items():
        for numbers in itertools.product(*(range(len(values)) for values in COMBINED.values())):
            options = {option: COMBINED[option][number] for option, number in zip(COMBINED, numbers)}
            rest = options.pop("rest")
            yield tool(f"both_{base}_{''.join(map(str, numbers))}", schema, **options, **rest)


def _examples(name):
    """Examples are read off the stored schema; these say what a sample does not look at."""
    return None if name in ("array_contains", "draft04_bounds") else True
