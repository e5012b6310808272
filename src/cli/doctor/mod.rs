//! `toolhook doctor`: looks at a deployment with the settings of `toolhook serve`, and says what is well, what to watch, what is
//! broken, and what to do about it. It changes nothing.

mod database;
mod network;

use std::fmt::Write as _;

use super::{Failure, answer};
use crate::config::settings::Serve;

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
#[derive(Debug)]
struct Finding {
    level: Level,
    about: &'static str,
    found: String,
    /// What to do, where there is something.
    todo: Option<String>,
}

impl Finding {
    fn ok(about: &'static str, found: impl Into<String>) -> Self {
        Self { level: Level::Ok, about, found: found.into(), todo: None }
    }

    fn warn(about: &'static str, found: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { level: Level::Warn, about, found: found.into(), todo: Some(todo.into()) }
    }

    fn fail(about: &'static str, found: impl Into<String>, todo: impl Into<String>) -> Self {
        Self { level: Level::Fail, about, found: found.into(), todo: Some(todo.into()) }
    }
}

/// Looks at everything, and fails if something is broken.
pub async fn run(settings: Serve) -> Result<(), Failure> {
    let mut findings = Vec::new();
    let webhooks = database::look(&settings, &mut findings).await;
    network::look(&settings, webhooks, &mut findings).await;
    answer::print(&report(&findings))?;
    let broken = findings.iter().filter(|finding| finding.level == Level::Fail).count();
    match broken {
        0 => Ok(()),
        1 => Err(Failure::Failed("1 check failed; its line above says what to do".to_owned())),
        _ => Err(Failure::Failed(format!("{broken} checks failed; their lines above say what to do"))),
    }
}

fn report(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.about.len()).max().unwrap_or_default();
    let mut text = String::new();
    for Finding { level, about, found, todo } in findings {
        let level = match level {
            Level::Ok => "ok  ",
            Level::Warn => "warn",
            Level::Fail => "FAIL",
        };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{level}  {about:width$}  {found}");
        if let Some(todo) = todo {
            let _ = writeln!(text, "      {:width$}  -> {todo}", "");
        }
    }
    text.trim_end().to_owned()
}
