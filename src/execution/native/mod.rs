//! Tools that are Rust code inside this process: with Toolhook as a library, a [`NativeHandler`] is registered under a name,
//! and tools that name it stand beside the stored ones; lists and calls do not tell them apart.

mod calculate;
mod count_text;
mod current_time;
mod decimal;

pub use calculate::Calculate;
pub use count_text::CountText;
pub use current_time::CurrentTime;

use super::job::{Job, Ran};
use super::{HandlerResult, unanswered};
use crate::domain::handler::{HandlerKind, HandlerSecrets};
use crate::domain::json::Object;
use crate::domain::limits::MAX_TIMEOUT_MS;
use crate::domain::{Failure, Faults, Fields, Handler, Pointer, Tool, ToolDraft};
use crate::registry::{Entry, HandlerKey};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Rust code that runs tools. One handler can serve several tools: it gets the tool's name.
pub trait NativeHandler: Send + Sync + 'static {
    /// Runs a call. `input` was validated against the tool's schema; `context` is what the agent backend sends along.
    ///
    /// The error is a reason that the model reads and can act on. The future is dropped at the call's deadline, which it only
    /// notices where it awaits: code that blocks belongs on a thread of its own. A panic is a failed call.
    fn call<'a>(
        &'a self,
        tool: &'a str,
        input: Object,
        context: &'a Object,
    ) -> BoxFuture<'a, Result<HandlerResult, String>>;
}

/// The native handlers and the tools that stand beside the stored ones. Cheap to clone.
#[derive(Clone, Default)]
pub struct Natives {
    handlers: BTreeMap<String, Arc<dyn NativeHandler>>,
    entries: Vec<Arc<Entry>>,
}

impl Natives {
    /// The tools of `toolhook dev`: `calculate`, `count_text` and `current_time`. They need nothing but this process, and do
    /// what models are bad at.
    pub fn built_in() -> Result<Self, Faults> {
        Self::default()
            .handler("calculate", Arc::new(Calculate))
            .handler("count_text", Arc::new(CountText))
            .handler("current_time", Arc::new(CurrentTime))
            .tool(&calculate::definition(), "calculate")?
            .tool(&count_text::definition(), "count_text")?
            .tool(&current_time::definition(), "current_time")
    }

    /// Registers a handler under a name, in place of one that had it. Stored tools reach it by `{"kind": "native", "function": <name>}`.
    #[must_use]
    pub fn handler(mut self, name: &str, handler: Arc<dyn NativeHandler>) -> Self {
        self.handlers.insert(name.to_owned(), handler);
        self
    }

    /// Adds a tool to every tenant, from its definition as the HTTP interface takes it (without `handler` and
    /// `provider_options`). The error says everything that is wrong with it.
    pub fn tool(self, definition: &Value, handler: &str) -> Result<Self, Faults> {
        let misread = |detail| Faults::one(Pointer::root(), detail);
        let mut fields = Fields::parse(definition.to_string().as_bytes()).map_err(misread)?;
        let reference = serde_json::json!({"kind": "native", "function": handler});
        let reference = serde_json::value::to_raw_value(&reference).map_err(|error| misread(error.to_string()))?;
        fields.set("handler", reference);
        let tool = ToolDraft::new(fields).check(None, &[], None)?;
        Ok(self.checked_tool(tool, handler))
    }

    /// Adds a tool that is checked already to every tenant; what it says about its handler does not count.
    #[must_use]
    pub fn checked_tool(mut self, tool: Tool, handler: &str) -> Self {
        let kind = HandlerKind::Native { function: handler.to_owned() };
        let secrets = HandlerSecrets::default();
        let handler = Arc::new(Handler { kind, timeout_ms: MAX_TIMEOUT_MS, max_attempts: 1, secrets });
        self.entries.push(Arc::new(Entry { tool, version: 1, handler, handler_key: HandlerKey::default() }));
        self
    }

    /// The tools, to be built into every registry; before the stored ones if they are to win over equal names.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.entries.clone()
    }

    /// Whether a handler is registered under this name.
    pub fn contains(&self, name: &str) -> bool {
        self.handlers.contains_key(name)
    }

    /// Runs a call by the handler of this name.
    pub(super) async fn call(&self, name: &str, job: &Job<'_>) -> Ran {
        let Some(handler) = self.handlers.get(name) else {
            let diagnostic = format!("no native handler is registered as {name:?}");
            return Ran { result: Err(unanswered::unreachable().because(diagnostic)), attempts: 0 };
        };
        if job.deadline <= Instant::now() {
            return Ran { result: Err(unanswered::not_started()), attempts: 0 };
        }
        let tool = job.entry.tool.name.as_str();
        // The call itself may panic as well as the future that it makes.
        let work = async { handler.call(tool, job.input.clone(), job.context).await };
        let result = match timeout_at(job.deadline, AssertUnwindSafe(work).catch_unwind()).await {
            Err(_) => Err(unanswered::timed_out()),
            Ok(Err(panic)) => Err(crashed(&*panic)),
            Ok(Ok(Err(reason))) if reason.trim().is_empty() => {
                Err(Failure::failed("handler_error", "The tool reported an error and gave no reason."))
            }
            Ok(Ok(Err(reason))) => Err(Failure::failed("handler_error", reason)),
            Ok(Ok(Ok(result))) => Ok(result),
        };
        Ran { result, attempts: 1 }
    }
}

impl fmt::Debug for Natives {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.handlers.keys()).finish()
    }
}

fn crashed(panic: &(dyn Any + Send)) -> Failure {
    let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    Failure::failed(
        "handler_crashed",
        "The tool crashed. It may have done part of its work: check before calling it again, with another input.",
    )
    .because(format!("panicked: {}", said.unwrap_or_else(|| "no message".to_owned())))
}
