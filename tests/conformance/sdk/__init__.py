from . import anthropic_messages, bedrock, cohere_chat, gemini, mcp, openai_chat, openai_responses, toolhook

FORMATS = (openai_chat, openai_responses, anthropic_messages, gemini, bedrock, cohere_chat, mcp, toolhook)
