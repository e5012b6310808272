"""What the modules of this folder have in common: one module per format, named for it.

`entries(tools)`    the declarations of a list, as (name, schema of the arguments, declaration)
`types(tools)`      holds a list against the SDK's types
`rules(tools)`      holds it against what no type says
`schema_rules(schema, declaration)`  the same for the arguments' schema
`replies(calls)`    what the provider's API would return for calls (id, name, arguments), by label; the first is the whole response
`result_types(append)`, `result_rules(append, ids)`  the same two for what is to be appended
`read(append)`      what a model is told, as `Seen`
`list_twins(tools)`, `result_twins(append)`  the same with one thing wrong, as `Twin`
"""
import copy
from collections import namedtuple

# `id` as the result names it; `error` is None where the format has no mark for errors.
Seen = namedtuple("Seen", "id error text value picture", defaults=(None, "", None, None))
# `check`: types or rules; `reason`: what the refusal has to say.
Twin = namedtuple("Twin", "check what reason payload")
# A twin of a schema: the declaration says whether it is strict.
SchemaTwin = namedtuple("SchemaTwin", "what reason schema strict", defaults=(False,))

NAME = r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}"  # what every provider takes
NAME_OF_PROPERTY = r"[a-zA-Z0-9_.-]{1,64}"
PLAIN = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"], "additionalProperties": False}


def changed(payload, *path, to):
    """A copy with another value at a path; `to=None` takes the member away, a function makes the value from the old one."""
    payload = copy.deepcopy(payload)
    place = payload
    for step in path[:-1]:
        place = place[step]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to(place[path[-1]]) if callable(to) else to
    return payload


def property_of(schema):
    """An object with one property of this schema."""
    return {"type": "object", "properties": {"p": schema}, "required": ["p"], "additionalProperties": False}
