"""An agent with Google Gemini and the tools that Toolhook has for it. Run as README.md says."""
import os
import sys

import httpx2  # comes with the client
from google import genai

toolhook = httpx2.Client(
    base_url=os.environ["TOOLHOOK_URL"],
    headers={"Authorization": f"Bearer {os.environ['TOOLHOOK_KEY']}"},
    timeout=120,
)
gemini = genai.Client()  # GEMINI_API_KEY, GOOGLE_GEMINI_BASE_URL
model = os.environ["MODEL"]

tools = toolhook.get("/v1/formats/gemini/tools").raise_for_status().json()["tools"]
prompt = " ".join(sys.argv[1:]) or "What can you find out with your tools?"
contents = [{"role": "user", "parts": [{"text": prompt}]}]

for _ in range(10):
    response = gemini.models.generate_content(model=model, contents=contents, config={"tools": tools})
    contents.append(response.candidates[0].content)

    # Runs the calls of the reply. Whatever goes wrong with one is told to the model, as its result.
    answer = toolhook.post(
        "/v1/formats/gemini/calls",
        json={"reply": response.model_dump(mode="json"), "context": {"user_id": "u_1"}},
    ).raise_for_status().json()
    if not answer["append"]:
        break
    for call in answer["calls"]:
        print(f"[{call['tool']}: {call['status']}]")
    contents += answer["append"]

print(response.text)
