//! A tenant's tools as one format declares them, ready to be sent.

use super::Registry;
use crate::domain::{Tool, fingerprint};
use crate::format::{FormatName, ListOptions};
use bytes::Bytes;
use serde_json::json;

/// Which tools a list has, and how they are declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListRequest {
    /// Tools with all of these tags.
    pub tags: Vec<String>,
    /// Tools with one of these names; all, if there are none.
    pub names: Vec<String>,
    /// What the format is asked for.
    pub options: ListOptions,
}

/// A list's bytes, and their fingerprint.
#[derive(Clone, Debug)]
pub struct RenderedList {
    /// `{"format", "registry_version", "tools", "omitted", "notes"}` as JSON text.
    pub body: Bytes,
    /// Changes when the bytes do.
    pub fingerprint: String,
}

impl ListRequest {
    fn wants(&self, tool: &Tool) -> bool {
        tool.enabled
            && self.tags.iter().all(|tag| tool.tags.contains(tag))
            && (self.names.is_empty() || self.names.iter().any(|name| name == tool.name.as_str()))
    }
}

impl Registry {
    /// The list that a format makes of this snapshot. The list of all tools without options is made once and kept.
    pub fn list(&self, format: FormatName, request: &ListRequest) -> RenderedList {
        if *request == ListRequest::default() {
            return self.kept_list(format).get_or_init(|| self.render(format, request)).clone();
        }
        self.render(format, request)
    }

    fn render(&self, format: FormatName, request: &ListRequest) -> RenderedList {
        let tools: Vec<&Tool> = self.entries().map(|entry| &entry.tool).filter(|tool| request.wants(tool)).collect();
        let rendered = (format.format().tools)(&tools, &request.options);
        let mut omitted = json!(rendered.omitted);
        if let Some(omitted) = omitted.as_array_mut() {
            // A tool that cannot be read is not there to be filtered; its author should hear of it all the same.
            let broken = self.broken().iter();
            omitted.extend(broken.map(|broken| json!({"name": broken.name, "reason": broken.reason})));
        }
        let document = json!({
            "format": format.as_str(),
            "registry_version": self.version(),
            "tools": rendered.tools,
            "omitted": omitted,
            "notes": rendered.notes,
        });
        // Without the room that a text has left while it is written: most of what a tenant takes are its lists.
        let body = Bytes::from(document.to_string().into_bytes().into_boxed_slice());
        let fingerprint = fingerprint(&body);
        RenderedList { body, fingerprint }
    }
}
