//! What a client may ask: the handshake or its successor, the list of tools, and a call.

use super::message::Message;
use super::reply::Fault;
use crate::domain::json::Object;
use crate::domain::{Answered, Outcome, Tool};
use crate::execution::{Executed, Origin, Request};
use crate::format::{FormatName, ListOptions};
use crate::http::calls::About;
use crate::http::page::{cursor, read_cursor};
use crate::http::problem::{Code, Problem};
use crate::http::{Access, AppState};
use crate::registry::{Entry, ListRequest, Registry};
use rmcp::model::{
    CacheScope, DiscoverResult, ErrorCode, ErrorData, Implementation, InitializeResult, ProtocolVersion, ResultType,
    ServerCapabilities, ToolsCapability,
};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// The most tools of one page: as many as any list here has at most, for many clients never ask for a second one.
const MOST_TOOLS: usize = 200;
/// The most characters of a tool's name that an error repeats; real names have at most 64.
const MAX_NAME_SHOWN: usize = 100;

/// One request, and what it is answered from.
pub(super) struct Exchange<'a> {
    pub(super) state: &'a AppState,
    pub(super) access: Access,
    pub(super) about: About,
    /// The tenant's tools.
    pub(super) registry: Arc<Registry>,
    /// Which of them the client sees: those with all of these tags.
    pub(super) tags: Vec<String>,
    pub(super) revision: ProtocolVersion,
}

impl Exchange<'_> {
    /// The result of the request.
    pub(super) async fn answer(self, message: &Message) -> Result<Box<RawValue>, Fault> {
        let older = self.revision.has_initialize();
        match message.method() {
            "initialize" => initialize(message),
            "ping" if older => raw(&json!({})),
            "server/discover" => raw(&DiscoverResult::from_server_info(
                ProtocolVersion::KNOWN_VERSIONS.to_vec(),
                InitializeResult::new(capabilities()).with_server_info(server()),
            )),
            "tools/list" => self.list(message),
            "tools/call" => self.call(message).await,
            other => {
                let name: String = other.chars().take(MAX_NAME_SHOWN).collect();
                let detail = format!("there is no method {name:?} here");
                Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, detail, None).into())
            }
        }
    }

    /// A page of the list that `GET /v1/formats/mcp/tools` answers.
    fn list(&self, message: &Message) -> Result<Box<RawValue>, Fault> {
        let after = match message.param("cursor") {
            None => None,
            Some(given) => match given.as_str().and_then(read_cursor) {
                Some(name) => Some(name),
                None => return Err(invalid("cursor: expected the nextCursor of an earlier answer")),
            },
        };
        let request = ListRequest { tags: self.tags.clone(), names: Vec::new(), options: ListOptions::default() };
        let list = self.registry.list(FormatName::Mcp, &request);
        let body = list.body();
        let all: Listed<'_> = serde_json::from_slice(&body).map_err(|why| Problem::internal(&why))?;
        let start = after.map_or(0, |after| all.tools.partition_point(|tool| *name(tool) <= *after));
        let rest = all.tools.get(start..).unwrap_or_default();
        let page = rest.get(..MOST_TOOLS).unwrap_or(rest);
        let more = rest.len() > page.len();
        let newer = !self.revision.has_initialize();
        raw(&Page {
            result_type: newer.then_some(ResultType::COMPLETE),
            tools: page,
            next_cursor: page.last().filter(|_| more).map(|last| cursor(&name(last))),
            // A changed tool is seen by the next request, so a client may keep nothing without asking.
            ttl_ms: newer.then_some(0),
            cache_scope: newer.then_some(CacheScope::Private),
        })
    }

    /// Runs a tool as every other route does, and renders its result.
    async fn call(mut self, message: &Message) -> Result<Box<RawValue>, Fault> {
        if message.param("name").is_none() {
            return Err(invalid("params.name: is required: the name of the tool that is called"));
        }
        let format = FormatName::Mcp.format();
        let call = (format.calls)(message.whole()).map_err(|fault| fault.to_string()).and_then(|reply| {
            reply.calls.into_iter().next().ok_or_else(|| "params: expected a name and arguments".to_owned())
        });
        let call = call.map_err(invalid)?;
        let Some(entry) = self.registry.get(&call.name).filter(|entry| self.shows(entry)).cloned() else {
            let name: String = call.name.chars().take(MAX_NAME_SHOWN).collect();
            return Err(invalid(format!("Unknown tool: {name}")));
        };
        if self.about.traceparent.is_none() {
            self.about.traceparent = message.meta()?.get_traceparent().map(str::to_owned);
        }
        let deadline = self.about.deadline(&self.access);
        let request = self.about.request(self.registry, vec![call], None, deadline);
        // Nothing in the protocol would say that the answer is not the result.
        let request = Request { restore: Some(format.restore), respond_async: false, ..request };
        let origin = Origin { key_id: self.access.key_id, format: Some(FormatName::Mcp.as_str()) };
        let executed = self.state.execute(request, origin).await?;
        let answered: Vec<Answered<'_>> = executed.iter().map(Executed::answered).collect();
        let rendered = (format.results)(&answered).pop();
        let Some(Value::Object(rendered)) = rendered else {
            return Err(Problem::new(Code::Internal, "the call was not answered").into());
        };
        let succeeded = answered.iter().all(|one| matches!(one.outcome, Outcome::Success(_)));
        let mut result = Object::new();
        if !self.revision.has_initialize() {
            result.insert("resultType".to_owned(), json!(ResultType::COMPLETE));
        }
        let pending = answered.iter().any(|one| matches!(one.outcome, Outcome::Pending(_)));
        result.extend(if succeeded { kept(&entry, rendered) } else { rendered });
        if pending && lists_output_schema(&entry.tool) {
            result.insert("isError".to_owned(), Value::Bool(true)); // else clients throw it away, as they do a success without structure
        }
        raw(&result)
    }

    fn shows(&self, entry: &Entry) -> bool {
        self.tags.iter().all(|tag| entry.tool.tags.contains(tag))
    }
}

/// The tools in a rendered list, each as its own bytes: they reach the client as the format wrote them.
#[derive(Deserialize)]
struct Listed<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
}

/// The part of a declaration that the list is ordered by.
#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

fn name(tool: &RawValue) -> Cow<'_, str> {
    serde_json::from_str(tool.get()).map(|named: Named<'_>| named.name).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    result_type: Option<ResultType>,
    tools: &'a [&'a RawValue],
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_scope: Option<CacheScope>,
}

/// Agrees on a revision: the one that is asked for, or else the newest that still begins like this.
fn initialize(message: &Message) -> Result<Box<RawValue>, Fault> {
    let Some(asked) = message.param("protocolVersion").and_then(Value::as_str) else {
        return Err(invalid("protocolVersion: is required: the revision that the client speaks"));
    };
    let mut known = ProtocolVersion::KNOWN_VERSIONS.iter().filter(|version| version.has_initialize());
    let agreed = known.find(|version| version.as_str() == asked).unwrap_or(&ProtocolVersion::LATEST_WITH_INITIALIZE);
    let agreed = InitializeResult::new(capabilities()).with_protocol_version(agreed.clone());
    raw(&agreed.with_server_info(server()))
}

fn capabilities() -> ServerCapabilities {
    let mut tools = ToolsCapability::default();
    tools.list_changed = Some(false); // nothing is streamed that could tell it
    let mut capabilities = ServerCapabilities::default();
    capabilities.tools = Some(tools);
    capabilities
}

fn server() -> Implementation {
    Implementation::new("toolhook", env!("CARGO_PKG_VERSION")).with_title("Toolhook")
}

/// Keeps the promise that a listed output schema makes: clients throw a success without structured content away, and the
/// model would see nothing of what came back.
fn kept(entry: &Entry, mut rendered: Object) -> Object {
    if rendered.contains_key("structuredContent") || !lists_output_schema(&entry.tool) {
        return rendered;
    }
    let notice = "The tool ran, but gave no structured result although its output schema promises one. What it gave follows; \
                  calling it again will not help.";
    if let Some(Value::Array(content)) = rendered.get_mut("content") {
        content.insert(0, json!({"type": "text", "text": notice}));
    }
    rendered.insert("isError".to_owned(), Value::Bool(true));
    rendered
}

fn lists_output_schema(tool: &Tool) -> bool {
    let listed = || (FormatName::Mcp.format().tools)(&[tool], &ListOptions::default());
    tool.output_schema.is_some() && listed().tools.iter().any(|tool| tool.get("outputSchema").is_some())
}

fn invalid(detail: impl Into<Cow<'static, str>>) -> Fault {
    ErrorData::invalid_params(detail, None).into()
}

fn raw(result: &impl Serialize) -> Result<Box<RawValue>, Fault> {
    to_raw_value(result).map_err(|why| Problem::internal(&why).into())
}
