"""An agent with OpenAI Chat Completions and the tools that Toolhook has for it. Run as README.md says."""
import os
import sys

import httpx2  # comes with the client
from openai import OpenAI, omit

toolhook = httpx2.Client(
    base_url=os.environ["TOOLHOOK_URL"],
    headers={"Authorization": f"Bearer {os.environ['TOOLHOOK_KEY']}"},
    timeout=120,
)
openai = OpenAI()  # OPENAI_API_KEY, OPENAI_BASE_URL
model = os.environ["MODEL"]

tools = toolhook.get("/v1/formats/openai-chat/tools").raise_for_status().json()["tools"]
messages = [{"role": "user", "content": " ".join(sys.argv[1:]) or "What can you find out with your tools?"}]

for _ in range(10):
    completion = openai.chat.completions.create(model=model, messages=messages, tools=tools or omit)
    messages.append(completion.choices[0].message)

    # Runs the calls of the reply. Whatever goes wrong with one is told to the model, as its result.
    answer = toolhook.post(
        "/v1/formats/openai-chat/calls",
        json={"reply": completion.model_dump(), "context": {"user_id": "u_1"}},
    ).raise_for_status().json()
    if not answer["append"]:
        break
    for call in answer["calls"]:
        print(f"[{call['tool']}: {call['status']}]")
    messages += answer["append"]

print(completion.choices[0].message.content)
