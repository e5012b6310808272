//! The providers' wire formats: how each declares tools, how its model calls them, how results go back.
//!
//! One file per format, each with three pure functions: `tools` (declare), `calls` (parse a reply) and `results`
//! (render). What the formats share lives beside them: [`list`] (what a list is asked for and what comes out),
//! [`declaration`] (one tool on its way into a list), [`schema`] (fitting a JSON Schema to a provider), [`reply`]
//! (finding the calls in what a provider's API returned) and [`outcome`] (text and objects that no provider refuses).
//!
//! What is absent here on purpose: I/O, clocks, tenants, and any list of "supported options". A renderer works on a
//! copy of a tool's options and *takes* what it understands; what is left is reported as dropped, so that reports
//! and the table of what a format can express are derived from the renderers themselves.
//!
//! This room imports the domain alone.
//!
//! Evidence marks in the comments: **S** the provider's SDK or published specification says so; **D** its
//! documentation; **E** its API's error texts, as several people quote them; **U** could not be verified.

mod anthropic;
mod bedrock;
mod cohere;
mod compatibility;
mod declaration;
mod expression;
mod foreign;
mod gemini;
mod list;
mod mcp;
mod nested;
mod openai_chat;
mod openai_responses;
mod outcome;
mod reply;
mod schema;
mod toolhook;

pub use compatibility::{Report, Verdict};
pub use list::{CacheTtl, Effect, ListOptions, Note, Omitted, Rendered, ToolSearch};
pub use reply::{Reply, ReplyFault};

use crate::domain::json::Object;
use crate::domain::{Answered, Tool};
use serde::Serialize;
use serde_json::Value;

/// The name of a wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FormatName {
    /// `OpenAI` Chat Completions, and the services compatible with it.
    OpenaiChat,
    /// `OpenAI` Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini `generateContent`.
    Gemini,
    /// AWS Bedrock Converse.
    Bedrock,
    /// Cohere v2 chat.
    Cohere,
    /// The Model Context Protocol's list and result shapes.
    Mcp,
    /// Toolhook's own plain JSON, for agents without a provider's shape.
    Toolhook,
}

/// The names of all formats, in the order of [`FormatName::ALL`].
pub const NAMES: [&str; 8] =
    ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock", "cohere", "mcp", "toolhook"];

/// One wire format: pure functions, and what there is to say about it.
#[derive(Debug)]
pub struct Format {
    /// Declares tools. They come ordered by name, enabled, and filtered by tag and name.
    pub tools: fn(&[&Tool], &ListOptions) -> Rendered,
    /// Finds the calls in a provider's reply.
    pub calls: fn(&Value) -> Result<Reply, ReplyFault>,
    /// Renders one result per call, in the order given, as what is to be appended to the conversation.
    pub results: fn(&[Answered<'_>]) -> Vec<Value>,
    /// The way back: maps arguments that a model sent under this format's declaration of the tool to the stored schema.
    /// Arguments that fit the stored schema already come back as they are.
    pub restore: fn(&Tool, Object) -> Object,
    /// What there is to say about it.
    pub about: About,
}

/// What a format is for and what its messages can hold, for the list of formats.
#[derive(Clone, Copy, Debug, Serialize, utoipa::ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts, each yes or no, and each a member of the answer")]
pub struct About {
    /// Its name for people.
    pub title: &'static str,
    /// Whether results are paired with calls by an id; if not, by name and position.
    pub pairs_by_id: bool,
    /// Whether a result has a mark for errors; if not, its text says so.
    pub marks_errors: bool,
    /// Whether a result can hold a picture.
    pub pictures: bool,
    /// Whether a result can hold an object; if not, objects go as JSON text.
    pub objects: bool,
    /// The most tools of one list.
    #[schema(required)]
    pub max_tools: Option<usize>,
}

impl FormatName {
    /// Every format.
    pub const ALL: [Self; 8] = [
        Self::OpenaiChat,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Bedrock,
        Self::Cohere,
        Self::Mcp,
        Self::Toolhook,
    ];

    /// The name in URLs and in `provider_options`.
    pub const fn as_str(self) -> &'static str {
        NAMES[self as usize]
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// The format of this name.
    pub const fn format(self) -> &'static Format {
        match self {
            Self::OpenaiChat => &openai_chat::FORMAT,
            Self::OpenaiResponses => &openai_responses::FORMAT,
            Self::Anthropic => &anthropic::FORMAT,
            Self::Gemini => &gemini::FORMAT,
            Self::Bedrock => &bedrock::FORMAT,
            Self::Cohere => &cohere::FORMAT,
            Self::Mcp => &mcp::FORMAT,
            Self::Toolhook => &toolhook::FORMAT,
        }
    }

    /// Finds the calls in a provider's reply. A reply in which this format finds none, but another provider's calls stand, is
    /// refused: it was posted to the wrong format.
    pub fn read(self, reply: &Value) -> Result<Reply, ReplyFault> {
        let read = (self.format().calls)(reply)?;
        if read.calls.is_empty() {
            foreign::check(self, reply)?;
        }
        Ok(read)
    }

    /// Which options a declaration of this format can carry: each option's place in a tool, and whether it is carried.
    /// Found out by rendering, so there is no list to keep in step.
    pub fn expresses(self) -> Vec<(String, bool)> {
        expression::of(self)
    }

    /// How well a tool fits this format, by what a list of it is. Found out by rendering.
    pub fn report(self, tool: &Tool) -> Report {
        compatibility::report(self, tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_formats_are_in_step() {
        for (format, name) in FormatName::ALL.into_iter().zip(NAMES) {
            assert_eq!(format.as_str(), name);
            assert_eq!(FormatName::parse(name), Some(format));
        }
        assert_eq!(FormatName::parse("OpenAI"), None);
    }
}
