"""An agent with Anthropic Messages and the tools that Toolhook has for it. Run as README.md says."""
import os
import sys

import httpx2  # comes with the client
from anthropic import Anthropic

toolhook = httpx2.Client(
    base_url=os.environ["TOOLHOOK_URL"],
    headers={"Authorization": f"Bearer {os.environ['TOOLHOOK_KEY']}"},
    timeout=120,
)
anthropic = Anthropic()  # ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
model = os.environ["MODEL"]

# The cache mark on the last tool covers all of them: the list is the same, byte for byte, until a tool changes.
tools = toolhook.get("/v1/formats/anthropic/tools?cache=5m").raise_for_status().json()["tools"]
messages = [{"role": "user", "content": " ".join(sys.argv[1:]) or "What can you find out with your tools?"}]

for _ in range(10):
    message = anthropic.messages.create(model=model, max_tokens=4096, messages=messages, tools=tools)
    messages.append({"role": "assistant", "content": message.content})

    # Runs the calls of the reply. Whatever goes wrong with one is told to the model, as its result.
    answer = toolhook.post(
        "/v1/formats/anthropic/calls",
        json={"reply": message.model_dump(), "context": {"user_id": "u_1"}},
    ).raise_for_status().json()
    if not answer["append"]:
        break
    for call in answer["calls"]:
        print(f"[{call['tool']}: {call['status']}]")
    messages += answer["append"]

print("".join(block.text for block in message.content if block.type == "text"))
