//! What a tool list is asked for, and what comes out.

use crate::domain::{Caller, Pointer};
use serde::Serialize;
use serde_json::Value;

/// What the list is asked for beside the tools. The default asks for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListOptions {
    /// Only tools that this caller may call.
    pub caller: Option<Caller>,
    /// A cache mark on the last tool that may carry one, where the provider has such marks.
    pub cache: Option<CacheTtl>,
    /// Which tool search goes with deferred tools. Absent: the provider's usual one.
    pub search: Option<ToolSearch>,
    /// The version of Anthropic's code execution tool that the agent runs.
    pub code_execution: Option<String>,
    /// Whether the agent runs programmatic tool calling on `OpenAI` Responses.
    pub programmatic: bool,
}

/// How long a provider keeps what a cache mark covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheTtl {
    /// Five minutes.
    FiveMinutes,
    /// An hour.
    OneHour,
}

/// Which tool search goes with deferred tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolSearch {
    /// None: the agent brings its own.
    None,
    /// By words.
    Bm25,
    /// By regular expressions.
    Regex,
}

/// The versions of Anthropic's code execution tool whose code may call tools (**S**, the values of `allowed_callers`).
pub(super) const CODE_EXECUTION_VERSIONS: [&str; 3] = ["20250825", "20260120", "20260521"];

impl CacheTtl {
    /// The name, in our queries and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FiveMinutes => "5m",
            Self::OneHour => "1h",
        }
    }
}

impl ListOptions {
    /// The query parameters that are options of a list.
    pub const PARAMETERS: [&str; 5] = ["caller", "cache", "search", "code_execution", "programmatic"];

    /// Takes one query parameter. `Ok(false)`: the name is none of [`Self::PARAMETERS`]. The error says what is
    /// expected.
    pub fn set(&mut self, parameter: &str, value: &str) -> Result<bool, String> {
        match parameter {
            "caller" => {
                let callers = [("human", Caller::Human), ("code_execution", Caller::CodeExecution)];
                self.caller = Some(one_of(value, &callers)?);
            }
            "cache" => self.cache = Some(one_of(value, &[("5m", CacheTtl::FiveMinutes), ("1h", CacheTtl::OneHour)])?),
            "search" => {
                let searches = [("none", ToolSearch::None), ("bm25", ToolSearch::Bm25), ("regex", ToolSearch::Regex)];
                self.search = Some(one_of(value, &searches)?);
            }
            "code_execution" => {
                let versions = CODE_EXECUTION_VERSIONS.map(|version| (version, version));
                self.code_execution = Some(one_of(value, &versions)?.to_owned());
            }
            "programmatic" => self.programmatic = one_of(value, &[("true", true), ("false", false)])?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn one_of<T: Copy>(value: &str, choices: &[(&str, T)]) -> Result<T, String> {
    choices.iter().find(|(name, _)| *name == value).map(|(_, choice)| *choice).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        format!("expected {}", names.join(" or "))
    })
}

/// A rendered list.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Rendered {
    /// What goes into the provider's request as it is.
    pub tools: Vec<Value>,
    /// The tools that are not in it.
    pub omitted: Vec<Omitted>,
    /// What was adapted or lost, tool by tool.
    pub notes: Vec<Note>,
}

/// A tool that is not in a list, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Omitted {
    /// The tool.
    pub name: String,
    /// Why it is left out.
    pub reason: String,
}

/// One difference between a tool and its declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Note {
    /// The tool.
    pub name: String,
    /// The place in the tool.
    pub pointer: Pointer,
    /// What happened to what stands there.
    pub effect: Effect,
    /// The difference, for the tool's author.
    pub detail: String,
}

/// What happened to a part of a tool on the way into a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Said in another way, with the same meaning.
    Rewritten,
    /// Left out: the provider has no place for it.
    Dropped,
    /// A rule of the schema that the model is not told. Calls are still held to it.
    Lost,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_parameters_are_read_by_name() {
        let mut options = ListOptions::default();
        for (name, value) in [
            ("caller", "code_execution"),
            ("cache", "1h"),
            ("search", "regex"),
            ("code_execution", "20260120"),
            ("programmatic", "true"),
        ] {
            assert_eq!(options.set(name, value), Ok(true), "{name}");
        }
        assert_eq!(options.cache.map(CacheTtl::as_str), Some("1h"));
        assert_eq!(options.caller, Some(Caller::CodeExecution));
        assert!(options.programmatic);
        assert_eq!(options.set("tag", "x"), Ok(false));
        assert_eq!(options.set("cache", "2h"), Err("expected 5m or 1h".to_owned()));
        assert_eq!(options.set("code_execution", "1"), Err("expected 20250825 or 20260120 or 20260521".to_owned()));
    }
}
