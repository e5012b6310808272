//! One JSON-RPC message, read strictly.

use super::reply::Refusal;
use crate::domain::json::{self, Object};
use crate::http::calls::MAX_LEVELS;
use rmcp::model::{ErrorData, RequestMetaObject};
use serde_json::Value;

/// A request, which has an id and is answered, or a notification, which has none and is not.
#[derive(Debug)]
pub(super) struct Message {
    /// The whole message; its `params` are an object, null or not there.
    whole: Value,
    method: String,
}

/// A message, for the reference.
#[derive(utoipa::ToSchema)]
#[schema(example = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get_weather", "arguments": {"city": "Sydney"}}}))]
#[expect(dead_code, reason = "the reference's words for a body that is read by hand")]
pub(super) struct McpMessage {
    /// The version of JSON-RPC.
    #[schema(pattern = "^2\\.0$")]
    jsonrpc: String,
    /// Repeated in the answer as it was written. A message without it is a notification, which gets no answer.
    #[schema(required = false, nullable = false)]
    id: Option<McpId>,
    /// What is asked.
    method: String,
    /// What belongs to it, as the protocol says.
    #[schema(value_type = Object, nullable, required = false)]
    params: Option<Value>,
}

/// What pairs an answer with its request.
#[derive(serde::Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "documents that there are two shapes")]
pub(super) enum McpId {
    /// Text.
    #[schema(title = "TextId")]
    Text(String),
    /// A number.
    #[schema(title = "NumberId")]
    Number(f64),
}

impl Message {
    /// Reads a body.
    pub(super) fn read(text: &[u8]) -> Result<Self, Box<Refusal>> {
        let parsed = json::parse(text, MAX_LEVELS);
        let whole = parsed.map_err(|detail| Refusal::of(None, ErrorData::parse_error(detail, None)))?;
        let Some(members) = whole.as_object() else {
            let detail = match whole {
                // Only 2025-03-26 had them, and nothing that asks for tools needs them.
                Value::Array(_) => "batches are not taken: send each message in a request of its own",
                _ => "expected an object: a JSON-RPC message",
            };
            return Err(Refusal::of(None, ErrorData::invalid_request(detail, None)));
        };
        let id = members.get("id");
        let readable = id.filter(|id| id.is_string() || id.is_number()).cloned();
        match check(members) {
            Ok(method) => Ok(Self { whole, method }),
            Err(error) => Err(Refusal::of(readable, error)),
        }
    }

    /// What pairs the answer with the request; a notification has none.
    pub(super) fn id(&self) -> Option<&Value> {
        self.whole.get("id")
    }

    /// What is asked.
    pub(super) fn method(&self) -> &str {
        &self.method
    }

    /// The message as it came.
    pub(super) const fn whole(&self) -> &Value {
        &self.whole
    }

    /// A member of the parameters that is there and not null.
    pub(super) fn param(&self, name: &str) -> Option<&Value> {
        self.whole.get("params")?.get(name).filter(|value| !value.is_null())
    }

    /// What the request says about itself.
    pub(super) fn meta(&self) -> Result<RequestMetaObject, ErrorData> {
        match self.param("_meta") {
            None => Ok(Object::new().into()),
            Some(Value::Object(members)) => Ok(members.clone().into()),
            Some(other) => {
                let detail = format!("params._meta: expected an object, got {}", json::kind(other));
                Err(ErrorData::invalid_params(detail, None))
            }
        }
    }

    /// Refuses this message.
    pub(super) fn refusal(&self, error: ErrorData) -> Box<Refusal> {
        Refusal::of(self.id().cloned(), error)
    }
}

/// Whether the members make a request or a notification; the method.
fn check(members: &Object) -> Result<String, ErrorData> {
    let malformed = |detail: String| Err(ErrorData::invalid_request(detail, None));
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return malformed("jsonrpc: expected \"2.0\"".to_owned());
    }
    let method = match members.get("method") {
        Some(Value::String(method)) => method.clone(),
        None if members.contains_key("result") || members.contains_key("error") => {
            return malformed("this server asks its clients nothing, so there is nothing to answer".to_owned());
        }
        None => return malformed("method: is required".to_owned()),
        Some(other) => return malformed(format!("method: expected a string, got {}", json::kind(other))),
    };
    match members.get("id") {
        None | Some(Value::String(_) | Value::Number(_)) => {}
        Some(other) => return malformed(format!("id: expected a string or a number, got {}", json::kind(other))),
    }
    match members.get("params") {
        None | Some(Value::Null | Value::Object(_)) => Ok(method),
        Some(other) => {
            let detail = format!("params: expected an object, got {}", json::kind(other));
            Err(ErrorData::invalid_params(detail, None))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn code(text: &str) -> (Option<Value>, i32) {
        let refusal = Message::read(text.as_bytes()).unwrap_err();
        (refusal.id().cloned(), refusal.code())
    }

    #[test]
    fn what_is_no_message_says_so_with_the_id_where_there_is_one() {
        for (text, id, expected) in [
            ("", None, -32700),
            ("{\"jsonrpc\":\"2.0\"", None, -32700),
            (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, None, -32700),
            (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, None, -32600),
            ("7", None, -32600),
            (r#"{"id":1,"method":"ping"}"#, Some(json!(1)), -32600),
            (r#"{"jsonrpc":2.0,"id":1,"method":"ping"}"#, Some(json!(1)), -32600),
            (r#"{"jsonrpc":"2.0","id":"a"}"#, Some(json!("a")), -32600),
            (r#"{"jsonrpc":"2.0","id":"a","method":null}"#, Some(json!("a")), -32600),
            (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Some(json!(1)), -32600),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None, -32600),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, None, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, Some(json!(1)), -32602),
        ] {
            assert_eq!(code(text), (id, expected), "{text}");
        }
    }

    #[test]
    fn an_id_keeps_its_digits() {
        for id in ["1", "\"1\"", "-7", "12345678901234567890123", "1.50", "\"\""] {
            let message = Message::read(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#).as_bytes());
            assert_eq!(message.unwrap().id().map(Value::to_string).as_deref(), Some(id));
        }
    }
}
