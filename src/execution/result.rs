//! What a handler gives back, and what a tool promised about it.

use super::clip::clip;
use super::turns::NoResult;
use crate::domain::json::{self, Object};
use crate::domain::limits::ResultCap;
use crate::domain::options::ResultType;
use crate::domain::{Content, Failure, Success, TenantLimits, Tool, violation};
use base64::Engine as _;
use serde_json::Value;

/// What a handler that did its work gives back.
#[derive(Clone, Debug, PartialEq)]
pub struct HandlerResult {
    /// For the model.
    pub content: Content,
    /// For the caller's program, beside it.
    pub data: Option<Object>,
}

impl HandlerResult {
    /// Text for the model.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: Content::Text(text.into()), data: None }
    }

    /// Text for the model, and data for the caller's program.
    pub fn with_data(text: impl Into<String>, data: Object) -> Self {
        Self { content: Content::Text(text.into()), data: Some(data) }
    }

    /// JSON: its text for the model; an object is also the data.
    pub fn json(value: Value) -> Self {
        let text = value.to_string();
        Self::json_as_written(value, text)
    }

    /// JSON whose text is known.
    pub(super) fn json_as_written(value: Value, text: String) -> Self {
        let data = value.as_object().cloned();
        Self { content: Content::Json { value, text }, data }
    }

    /// A picture of type `image/png`, `image/jpeg`, `image/gif` or `image/webp`; providers refuse other types.
    pub fn image(media_type: impl Into<String>, bytes: &[u8]) -> Self {
        let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
        Self { content: Content::Image { media_type: media_type.into(), base64 }, data: None }
    }
}

/// Holds a result against what the tool promised, and cuts its text to the cap. Data is never cut.
pub(super) fn settle(tool: &Tool, tenant: &TenantLimits, given: HandlerResult) -> Result<Success, Failure> {
    let HandlerResult { content, data } = given;
    if data.is_none() && tool.options.result_type == Some(ResultType::Structured) {
        return Err(Failure::failed(
            "result_not_structured",
            format!(
                "The tool ran, but its result is no object although this tool promises one: {} came back. \
                 Its author has to mend it; calling it again will not help.",
                described(&content)
            ),
        ));
    }
    if let (Some(schema), Some(data)) = (&tool.output_schema, &data)
        && let Err(violations) = schema.check(&Value::Object(data.clone()))
    {
        let told = violation::told(&violations);
        return Err(Failure::failed(
            "result_does_not_fit",
            format!(
                "The tool ran, but its result does not fit the output schema that it promises: {told}. \
                 Its author has to mend it; calling it again will not help."
            ),
        ));
    }
    Ok(within(cap(tool.limits.max_result_chars, tenant), HandlerResult { content, data }))
}

/// A result of a tool that is not there any more: nothing is promised about it, and the tenant's own cap holds.
pub(super) fn bounded(tenant: &TenantLimits, given: HandlerResult) -> Success {
    within(cap(ResultCap::Inherit, tenant), given)
}

fn within(cap: Option<u32>, given: HandlerResult) -> Success {
    let HandlerResult { content, data } = given;
    let (content, truncated) = match cap {
        Some(cap) => cut(content, cap),
        None => (content, false),
    };
    Success { content, data, truncated }
}

/// A result that could not be held against the output schema.
pub(super) fn unsettled(why: NoResult) -> Failure {
    let what = match why {
        NoResult::Waiting => "there was no time to check its result",
        NoResult::TooMuch => "its result is too much to check against its output schema",
        NoResult::Broken => "its result could not be checked, by a fault of the service",
    };
    let detail = format!("The tool ran, but {what}. It has done its work: check before calling it again.");
    Failure::failed("result_not_checked", detail)
}

/// The tool's own cap, or the tenant's where the tool says nothing.
fn cap(own: ResultCap, tenant: &TenantLimits) -> Option<u32> {
    match own {
        ResultCap::Inherit => tenant.max_result_chars,
        ResultCap::Unlimited => None,
        ResultCap::Chars(chars) => Some(chars),
    }
}

/// JSON that is cut is no JSON any more, so it goes on as text.
fn cut(content: Content, cap: u32) -> (Content, bool) {
    let shortened = match &content {
        Content::Text(text) | Content::Json { text, .. } => clip(text, usize::try_from(cap).unwrap_or(usize::MAX)),
        Content::Image { .. } => None,
    };
    match shortened {
        Some(text) => (Content::Text(text), true),
        None => (content, false),
    }
}

fn described(content: &Content) -> &'static str {
    match content {
        Content::Text(text) if text.is_empty() => "nothing",
        Content::Text(_) => "text",
        Content::Json { value, .. } => json::kind(value),
        Content::Image { .. } => "a picture",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Fields, ToolDraft};
    use serde_json::json;

    fn tool(more: &str) -> Tool {
        let text = format!(r#"{{"name":"t","description":"d","input_schema":{{}},"handler":"h"{more}}}"#);
        ToolDraft::new(Fields::parse(text.as_bytes()).unwrap()).check(None, &[], None).unwrap()
    }

    fn settle(more: &str, given: HandlerResult) -> Result<Success, Failure> {
        super::settle(&tool(more), &TenantLimits { max_result_chars: Some(5), ..TenantLimits::default() }, given)
    }

    #[test]
    fn a_structured_tool_gives_an_object() {
        let structured = r#","result_type":"structured""#;
        assert!(settle(structured, HandlerResult::json(json!({}))).is_ok());
        assert!(settle(structured, HandlerResult::with_data("", Object::new())).is_ok());
        for bad in [HandlerResult::text(""), HandlerResult::json(json!([1])), HandlerResult::image("image/png", b"x")] {
            assert_eq!(settle(structured, bad).unwrap_err().code, "result_not_structured");
        }
        assert!(settle(r#","result_type":"text""#, HandlerResult::json(json!({"a": 1}))).unwrap().data.is_some());
    }

    #[test]
    fn data_is_held_against_the_output_schema() {
        let with = r#","output_schema":{"required":["n"],"properties":{"n":{"type":"integer"}}}"#;
        assert!(settle(with, HandlerResult::json(json!({"n": 1}))).is_ok());
        assert!(settle(with, HandlerResult::text("no data")).is_ok());
        let failure = settle(with, HandlerResult::json(json!({"n": "1"}))).unwrap_err();
        assert!(failure.message.contains("/n: expected an integer"), "{}", failure.message);
    }

    #[test]
    fn the_tools_cap_goes_before_the_tenants() {
        let long = || HandlerResult::text("0123456789");
        for (more, kept) in [
            ("", Some("0123\n")),
            (r#","max_result_chars":null"#, Some("0123\n")),
            (r#","max_result_chars":9"#, Some("0123456\n")),
            (r#","max_result_chars":10"#, None),
            (r#","max_result_chars":"unlimited""#, None),
        ] {
            let success = settle(more, long()).unwrap();
            assert_eq!(success.truncated, kept.is_some(), "{more}");
            assert!(success.content.text().starts_with(kept.unwrap_or("0123456789")), "{more}");
        }
    }

    #[test]
    fn cut_json_is_text_and_its_data_is_whole() {
        let value = json!({"rows": [1, 2, 3]});
        let success = settle("", HandlerResult::json(value.clone())).unwrap();
        assert!(matches!(success.content, Content::Text(_)) && success.truncated);
        assert_eq!(success.data.map(Value::Object), Some(value));
    }
}
