"""An agent with OpenAI Responses and the tools that Toolhook has for it. Run as README.md says."""
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

tools = toolhook.get("/v1/formats/openai-responses/tools").raise_for_status().json()["tools"]
items = [{"role": "user", "content": " ".join(sys.argv[1:]) or "What can you find out with your tools?"}]

for _ in range(10):
    response = openai.responses.create(model=model, input=items, tools=tools or omit, store=False)
    items += response.output

    # Runs the calls of the reply. Whatever goes wrong with one is told to the model, as its result.
    answer = toolhook.post(
        "/v1/formats/openai-responses/calls",
        json={"reply": response.model_dump(), "context": {"user_id": "u_1"}},
    ).raise_for_status().json()
    if not answer["append"]:
        break
    for call in answer["calls"]:
        print(f"[{call['tool']}: {call['status']}]")
    items += answer["append"]

print(response.output_text)
