//! A call, and what became of it.

use super::json::Object;
use super::options::ResultType;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who makes a call.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// The model, in conversation with a person.
    #[default]
    Human,
    /// Code that the model runs.
    CodeExecution,
}

impl Caller {
    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::CodeExecution => "code_execution",
        }
    }
}

/// One call as a model made it, in no provider's shape.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The provider's id, by which it pairs the result. Some providers give none.
    pub call_id: Option<String>,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// What stood where the arguments belong; read by [`super::arguments::read`].
    pub arguments: Value,
    /// Who calls.
    pub caller: Caller,
    /// Members of the provider's call that its result must repeat (Responses' `caller`, for one).
    pub echo: Object,
    /// The provider cut its reply at the token limit, so these arguments may be half of what was meant.
    pub cut_off: bool,
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// Claimed, and perhaps sent: its end is not known yet.
    Running,
    /// The handler did it.
    Succeeded,
    /// The handler said that it could not, or its answer could not be understood.
    Failed,
    /// Never sent: bad input, disabled, caller not allowed, over a limit.
    Rejected,
    /// The deadline passed. If the request had been sent, it may have run.
    TimedOut,
    /// The handler took it and reports later.
    Pending,
    /// Sent, and the answer was lost: it may have run.
    Unknown,
}

impl CallStatus {
    /// Every status.
    pub const ALL: [Self; 7] =
        [Self::Running, Self::Succeeded, Self::Failed, Self::Rejected, Self::TimedOut, Self::Pending, Self::Unknown];

    /// The name on the wire and in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Rejected => "rejected",
            Self::TimedOut => "timed_out",
            Self::Pending => "pending",
            Self::Unknown => "unknown",
        }
    }

    /// Whether its end is still to come.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Pending)
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == name)
    }
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// [`CallStatus::Succeeded`].
    Success(Success),
    /// [`CallStatus::Pending`]: the handler took it and reports later. What the model is told meanwhile.
    Pending(String),
    /// Any of the ways not to succeed.
    Failure(Failure),
}

/// A handler's result.
#[derive(Clone, Debug, PartialEq)]
pub struct Success {
    /// What the model gets.
    pub content: Content,
    /// What the caller's program gets beside it.
    pub data: Option<Object>,
    /// Whether the text was cut to the tool's cap.
    pub truncated: bool,
}

/// What a model gets from a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Text. May be empty.
    Text(String),
    /// JSON: as an object where the provider has a place for one, as its text elsewhere.
    Json {
        /// The value.
        value: Value,
        /// Its text, as the handler wrote it.
        text: String,
    },
    /// A picture.
    Image {
        /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
        media_type: String,
        /// The picture's bytes in base 64.
        base64: String,
    },
}

impl Content {
    /// The content as text; for a picture, a text that says that there is one.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) | Self::Json { text, .. } => text.clone(),
            Self::Image { media_type, base64 } => {
                format!("[a picture of type {media_type}, {} bytes]", base64.len() / 4 * 3)
            }
        }
    }
}

/// Why a call did not succeed. It has two faces: one for the model, one for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Which of the ways not to succeed.
    pub status: CallStatus,
    /// A stable code, such as `invalid_input`.
    pub code: &'static str,
    /// For the model: what is wrong and what to do about it.
    pub message: String,
    /// For the log only: addresses, upstream bodies, source chains.
    pub diagnostic: Option<String>,
}

impl Failure {
    /// A call that was never sent.
    pub fn rejected(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: CallStatus::Rejected, code, message: message.into(), diagnostic: None }
    }

    /// A call whose handler could not or did not.
    pub fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self { status: CallStatus::Failed, code, message: message.into(), diagnostic: None }
    }

    /// The same with a diagnostic for the log.
    #[must_use]
    pub fn because(mut self, diagnostic: impl Into<String>) -> Self {
        self.diagnostic = Some(diagnostic.into());
        self
    }
}

impl Outcome {
    /// The call's status.
    pub const fn status(&self) -> CallStatus {
        match self {
            Self::Success(_) => CallStatus::Succeeded,
            Self::Pending(_) => CallStatus::Pending,
            Self::Failure(failure) => failure.status,
        }
    }
}

/// A call with its outcome: what a format renders.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The call.
    pub call: &'a ToolCall,
    /// What became of it.
    pub outcome: &'a Outcome,
    /// What kind of result the tool declares, if it is known.
    pub result_type: Option<ResultType>,
}
