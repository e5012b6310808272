"""One module per API: `PATH`, `validate(body)` (raises what is wrong) and `reply(body)`."""
from . import anthropic_messages, gemini, openai_chat, openai_responses

ALL = (openai_chat, openai_responses, anthropic_messages, gemini)
