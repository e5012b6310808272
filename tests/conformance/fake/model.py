"""What the fake model does: which tools it calls next, and what it says in the end."""
import json

import sample

# Values that make more of a demonstration than a sample does.
SAID = {"expression": "6 * 7", "text": "Zürich", "utc_offset": "+01:00"}


def next_calls(tools, called):
    """The calls of the next reply: tools are (name, schema); `called` are the names that were called already."""
    left = [tool for tool in tools if tool[0] not in called]
    now = left[:-1] if not called and len(left) > 1 else left
    return [(f"call{len(called) + number:05}", name, _arguments(schema)) for number, (name, schema) in enumerate(now)]


def _arguments(schema):
    found = sample.arguments(schema, True)
    return {name: SAID.get(name, value) for name, value in found.items()}


def last_words(results):
    """The final text: what the tools said."""
    texts = (result if isinstance(result, str) else json.dumps(result, ensure_ascii=False) for result in results)
    return "The tools said: " + " | ".join(texts)
