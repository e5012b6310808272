//! Replies in every form that an agent may have at hand.

use serde_json::{Value, json};
use toolhook::domain::{Caller, ToolCall};
use toolhook::format::{FormatName, Reply, ReplyFault};

fn read(format: FormatName, reply: &Value) -> Result<Reply, ReplyFault> {
    (format.format().calls)(reply)
}

fn calls(format: FormatName, reply: &Value) -> Vec<ToolCall> {
    read(format, reply).unwrap_or_else(|fault| panic!("{format:?}: {fault}: {reply}")).calls
}

/// Every form has the same two calls in it; `cut` is the form that says that it was cut off.
fn same_in(format: FormatName, forms: &[Value], expected: &[(Option<&str>, &str, Value)]) {
    for form in forms {
        let found = calls(format, form);
        let told: Vec<_> = found.iter().map(|c| (c.call_id.as_deref(), c.name.as_str(), c.arguments.clone())).collect();
        assert_eq!(told, expected, "{form}");
        assert!(found.iter().all(|call| !call.cut_off), "{form}");
    }
}

#[test]
fn openai_chat() {
    let a = json!({"id": "call_a", "type": "function", "function": {"name": "find", "arguments": "{\"q\":1}"}});
    let b = json!({"id": "call_b", "function": {"name": "ping", "arguments": null}});
    let custom = json!({"id": "call_c", "type": "custom", "custom": {"name": "x", "input": "y"}});
    let list = json!([a, custom, b]);
    let message =
        json!({"role": "assistant", "content": null, "refusal": null, "function_call": null, "tool_calls": list});
    let choice = json!({"index": 0, "finish_reason": "tool_calls", "message": message, "logprobs": null});
    let forms =
        [json!({"id": "x", "object": "chat.completion", "choices": [choice, choice]}), choice, message.clone(), list];
    same_in(
        FormatName::OpenaiChat,
        &forms,
        &[(Some("call_a"), "find", json!("{\"q\":1}")), (Some("call_b"), "ping", json!(null))],
    );
    same_in(FormatName::OpenaiChat, &[a.clone(), json!([a])], &[(Some("call_a"), "find", json!("{\"q\":1}"))]);
    let text = json!({"role": "assistant", "content": "hello", "tool_calls": null});
    same_in(FormatName::OpenaiChat, &[text.clone(), json!({"choices": [{"message": text}]}), json!([])], &[]);
    let cut = json!({"choices": [{"finish_reason": "length", "message": message}]});
    assert!(calls(FormatName::OpenaiChat, &cut).iter().all(|call| call.cut_off));
}

#[test]
fn openai_responses() {
    let a = json!({"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "find", "arguments": "{}", "status": "completed", "caller": null});
    let b = json!({"type": "function_call", "call_id": "call_b", "name": "ping", "arguments": "", "namespace": "ping",
        "caller": {"type": "program", "caller_id": "call_p"}});
    let output = json!([{"type": "reasoning", "id": "rs_1", "summary": []}, a, {"type": "message", "role": "assistant", "content": []}, b]);
    let whole = json!({"object": "response", "status": "completed", "incomplete_details": null, "output": output});
    let expected = [(Some("call_a"), "find", json!("{}")), (Some("call_b"), "ping", json!(""))];
    same_in(FormatName::OpenaiResponses, &[whole, output.clone()], &expected);
    let single = calls(FormatName::OpenaiResponses, &b);
    assert_eq!(single[0].caller, Caller::CodeExecution);
    assert_eq!(single[0].echo.get("caller"), Some(&json!({"type": "program", "caller_id": "call_p"})));
    same_in(FormatName::OpenaiResponses, &[json!({"type": "message", "role": "assistant", "content": []})], &[]);
    let cut = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": output});
    assert!(calls(FormatName::OpenaiResponses, &cut).iter().all(|call| call.cut_off));
}

#[test]
fn anthropic() {
    let a = json!({"type": "tool_use", "id": "toolu_a", "name": "find", "input": {"q": 1}, "caller": null, "toolset_name": null});
    let b = json!({"type": "tool_use", "id": "toolu_b", "name": "ping", "input": {},
        "caller": {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}});
    let content = json!([{"type": "text", "text": "hm", "citations": null}, a, {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}},
        {"type": "tool_use", "id": "toolu_c", "name": "click", "input": {}, "toolset_name": "browser"}, b]);
    let message = json!({"role": "assistant", "content": content});
    let whole = json!({"type": "message", "role": "assistant", "stop_reason": "tool_use", "content": content});
    let expected = [(Some("toolu_a"), "find", json!({"q": 1})), (Some("toolu_b"), "ping", json!({}))];
    same_in(FormatName::Anthropic, &[whole, message, content.clone()], &expected);
    assert_eq!(calls(FormatName::Anthropic, &b)[0].caller, Caller::CodeExecution);
    assert_eq!(calls(FormatName::Anthropic, &a)[0].caller, Caller::Human);
    same_in(
        FormatName::Anthropic,
        &[json!({"role": "assistant", "content": "hello"}), json!({"type": "text", "text": "x"})],
        &[],
    );
    let cut = json!({"type": "message", "stop_reason": "max_tokens", "content": content});
    assert!(calls(FormatName::Anthropic, &cut).iter().all(|call| call.cut_off));
}

#[test]
fn gemini() {
    let a = json!({"functionCall": {"id": "fc-1", "name": "find", "args": {"q": 1}}, "thoughtSignature": "b3Bh"});
    let b =
        json!({"function_call": {"id": null, "name": "ping", "args": null}, "text": null, "thought_signature": null});
    let parts = json!([{"text": "hm", "thought": true}, a, b]);
    let content = json!({"role": "model", "parts": parts});
    let candidate = json!({"content": content, "finish_reason": "STOP", "index": null});
    let forms =
        [json!({"candidates": [candidate], "usage_metadata": {}}), candidate, content.clone(), parts, json!([content])];
    same_in(FormatName::Gemini, &forms, &[(Some("fc-1"), "find", json!({"q": 1})), (None, "ping", json!(null))]);
    let bare = [json!({"name": "ping"}), json!({"functionCall": {"name": "ping"}}), json!([{"name": "ping"}])];
    same_in(FormatName::Gemini, &bare, &[(None, "ping", json!(null))]);
    let silent = [
        json!({"candidates": null, "promptFeedback": {"blockReason": "SAFETY"}}),
        json!({"candidates": [{"finishReason": "SAFETY"}]}),
        json!({"text": "hello"}),
        json!({"role": "model", "parts": null}),
    ];
    same_in(FormatName::Gemini, &silent, &[]);
    for key in ["finishReason", "finish_reason"] {
        let cut = json!({"candidates": [{"content": content, key: "MAX_TOKENS"}]});
        assert!(calls(FormatName::Gemini, &cut).iter().all(|call| call.cut_off));
    }
}

#[test]
fn bedrock() {
    let a = json!({"toolUse": {"toolUseId": "tu-1", "name": "find", "input": {"q": 1}}});
    let b = json!({"toolUse": {"toolUseId": "tu-2", "name": "ping", "input": {}, "type": null}});
    let server = json!({"toolUse": {"toolUseId": "tu-3", "name": "x", "input": {}, "type": "server_tool_use"}});
    let content = json!([{"text": "hm"}, {"reasoningContent": {"reasoningText": {"text": "x"}}}, a, server, b]);
    let message = json!({"role": "assistant", "content": content});
    let whole = json!({"output": {"message": message}, "stopReason": "tool_use", "usage": {}});
    let forms = [whole, json!({"message": message}), message.clone(), content];
    let expected = [(Some("tu-1"), "find", json!({"q": 1})), (Some("tu-2"), "ping", json!({}))];
    same_in(FormatName::Bedrock, &forms, &expected);
    same_in(FormatName::Bedrock, &[a.clone(), a["toolUse"].clone()], &expected[..1]);
    same_in(FormatName::Bedrock, &[json!({"text": "hello"}), json!({"role": "assistant", "content": []})], &[]);
    let cut = json!({"output": {"message": message}, "stopReason": "max_tokens"});
    assert!(calls(FormatName::Bedrock, &cut).iter().all(|call| call.cut_off));
}

#[test]
fn cohere() {
    let a = json!({"id": "find_x1", "type": "function", "function": {"name": "find", "arguments": "{\"q\":1}"}});
    let message = json!({"role": "assistant", "tool_plan": "I will look.", "tool_calls": [a], "content": null, "citations": null});
    let forms = [json!({"id": "r", "message": message, "finish_reason": "TOOL_CALL"}), message.clone(), json!([a]), a];
    same_in(FormatName::Cohere, &forms, &[(Some("find_x1"), "find", json!("{\"q\":1}"))]);
    let text = json!({"id": "r", "message": {"role": "assistant", "content": [{"type": "text", "text": "hi"}]}});
    same_in(FormatName::Cohere, &[text], &[]);
    let cut = json!({"message": message, "finish_reason": "MAX_TOKENS"});
    assert!(calls(FormatName::Cohere, &cut).iter().all(|call| call.cut_off));
}

#[test]
fn mcp_and_our_own() {
    let params = json!({"name": "find", "arguments": {"q": 1}, "_meta": {}});
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    same_in(FormatName::Mcp, &[request.clone(), json!([request])], &[(Some("7"), "find", json!({"q": 1}))]);
    same_in(FormatName::Mcp, &[params], &[(None, "find", json!({"q": 1}))]);
    same_in(
        FormatName::Mcp,
        &[json!({"method": "tools/call", "params": {"name": "who"}})],
        &[(None, "who", json!(null))],
    );
    let own = json!({"id": "1", "name": "find", "input": {"q": 1}});
    let forms = [own.clone(), json!([own]), json!({"calls": [own]})];
    same_in(FormatName::Toolhook, &forms, &[(Some("1"), "find", json!({"q": 1}))]);
    assert_eq!(
        calls(FormatName::Toolhook, &json!({"name": "x", "caller": "code_execution"}))[0].caller,
        Caller::CodeExecution
    );
}

#[test]
fn a_call_that_could_not_be_answered_is_a_fault_at_its_place() {
    let place = |format, reply: Value| read(format, &reply).unwrap_err().pointer.to_string();
    let chat = json!({"choices": [{"message": {"tool_calls": [{"function": {"name": "x", "arguments": ""}}]}}]});
    assert_eq!(place(FormatName::OpenaiChat, chat), "/choices/0/message/tool_calls/0/id");
    assert_eq!(place(FormatName::OpenaiChat, json!({"id": "a", "function": {"name": ""}})), "/function/name");
    assert_eq!(
        place(FormatName::OpenaiResponses, json!([{"type": "function_call", "id": "fc_1", "name": "x"}])),
        "/0/call_id"
    );
    assert_eq!(place(FormatName::Anthropic, json!({"content": [{"type": "tool_use", "name": "x"}]})), "/content/0/id");
    assert_eq!(place(FormatName::Bedrock, json!([{"toolUse": {"name": "x"}}])), "/0/toolUse/toolUseId");
    assert_eq!(
        place(FormatName::Cohere, json!({"message": {"tool_calls": [{"function": {"name": "x"}}]}})),
        "/message/tool_calls/0/id"
    );
    assert_eq!(place(FormatName::Gemini, json!({"functionCall": {"args": {}}})), "/functionCall/name");
    assert_eq!(place(FormatName::Mcp, json!({"method": "tools/list", "params": {}})), "/method");
}

#[test]
fn what_is_no_reply_is_a_fault() {
    for format in FormatName::ALL {
        for odd in
            [json!(null), json!(7), json!("hello"), json!({}), json!([7]), json!({"foo": {"bar": 1}, "baz": null})]
        {
            let silent = format == FormatName::Gemini || format == FormatName::Bedrock;
            if odd.get("foo").is_some() && silent {
                continue; // parts and blocks are told by their keys, and there are new ones every year
            }
            assert!(read(format, &odd).is_err(), "{format:?}: {odd}");
        }
    }
}
