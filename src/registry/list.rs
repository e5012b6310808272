//! A tenant's tools as one format declares them, ready to be sent.

use super::Registry;
use crate::domain::{Tool, fingerprint};
use crate::format::{FormatName, ListOptions};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How many filtered lists a snapshot keeps, and how many bytes of them: agents ask for the same few again and again.
const FILTERED: usize = 16;
const FILTERED_BYTES: usize = 512 * 1024;
/// A list that is smaller is not worth compressing: it fits into one packet.
const WORTH_COMPRESSING: usize = 1_400;

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

/// A list's bytes, and their fingerprint. Cheap to clone.
#[derive(Clone, Debug)]
pub struct RenderedList(Arc<Rendered>);

#[derive(Debug)]
struct Rendered {
    body: Bytes,
    gzipped: OnceLock<Option<Bytes>>,
    fingerprint: String,
}

impl RenderedList {
    /// `{"format", "registry_version", "tools", "omitted", "notes"}` as JSON text.
    pub fn body(&self) -> Bytes {
        self.0.body.clone()
    }

    /// The same in gzip's format, made once; none if that would not be shorter.
    pub fn gzipped(&self) -> Option<Bytes> {
        self.0.gzipped.get_or_init(|| compress(&self.0.body)).clone()
    }

    /// Changes when the bytes do.
    pub fn fingerprint(&self) -> &str {
        &self.0.fingerprint
    }
}

fn compress(body: &[u8]) -> Option<Bytes> {
    if body.len() < WORTH_COMPRESSING {
        return None;
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::default());
    encoder.write_all(body).ok()?;
    let compressed = encoder.finish().ok().filter(|compressed| compressed.len() < body.len())?;
    Some(compressed.into())
}

/// The filtered lists that somebody asked for, the newest last.
#[derive(Debug, Default)]
pub(super) struct Filtered(Mutex<VecDeque<(FormatName, ListRequest, RenderedList)>>);

impl Filtered {
    fn find(&self, format: FormatName, request: &ListRequest) -> Option<RenderedList> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(of, what, _)| *of == format && what == request);
        found.map(|(_, _, list)| list.clone())
    }

    fn keep(&self, format: FormatName, request: &ListRequest, list: RenderedList) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((format, request.clone(), list));
        let mut bytes: usize = kept.iter().map(|(_, _, list)| list.0.body.len()).sum();
        while kept.len() > FILTERED || bytes > FILTERED_BYTES {
            let Some((_, _, oldest)) = kept.pop_front() else { return };
            bytes -= oldest.0.body.len();
        }
    }
}

impl ListRequest {
    fn wants(&self, tool: &Tool) -> bool {
        tool.enabled
            && self.tags.iter().all(|tag| tool.tags.contains(tag))
            && (self.names.is_empty() || self.names.iter().any(|name| name == tool.name.as_str()))
    }
}

impl Registry {
    /// The list that a format makes of this snapshot. A list is made once: that of all tools is kept as long as the snapshot, others
    /// while they are among those that were last asked for.
    pub fn list(&self, format: FormatName, request: &ListRequest) -> RenderedList {
        if *request == ListRequest::default() {
            return self.kept_list(format).get_or_init(|| self.render(format, request)).clone();
        }
        if let Some(list) = self.filtered().find(format, request) {
            return list;
        }
        let list = self.render(format, request);
        self.filtered().keep(format, request, list.clone());
        list
    }

    /// The list, if it has been made already.
    pub fn made_list(&self, format: FormatName, request: &ListRequest) -> Option<RenderedList> {
        if *request == ListRequest::default() {
            return self.kept_list(format).get().cloned();
        }
        self.filtered().find(format, request)
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
        RenderedList(Arc::new(Rendered { body, gzipped: OnceLock::new(), fingerprint }))
    }
}
