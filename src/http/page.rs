//! Lists: `{"data": […], "next_cursor": …}`.

use super::extract::Query;
use crate::store::{Page, PageRequest};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

/// How many rows a page has where the request does not say.
const DEFAULT_LIMIT: i64 = 50;
/// How many rows a page may have.
const MAX_LIMIT: i64 = 200;

/// A page as it is answered.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct ListView<T> {
    /// The rows, in a stable order.
    pub data: Vec<T>,
    /// Give it as `cursor` to get the next page; null on the last one.
    #[schema(required)]
    pub next_cursor: Option<String>,
}

impl<T> ListView<T> {
    /// Renders a page; `key` is what a row is ordered by.
    pub(super) fn of<R>(page: Page<R>, key: impl Fn(&R) -> String, view: impl Fn(R) -> T) -> Self {
        let last = page.rows.last().filter(|_| page.more);
        let next_cursor = last.map(|row| cursor(&key(row)));
        Self { data: page.rows.into_iter().map(view).collect(), next_cursor }
    }
}

/// Takes `limit` and `cursor` from a query; `read` reads the key that the cursor holds.
pub(super) fn page_request<K>(query: &mut Query, read: impl Fn(&str) -> Option<K>) -> PageRequest<K> {
    let limit = query.read("limit", &format!("an integer from 1 to {MAX_LIMIT}"), |text| {
        text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit))
    });
    let after = query.read("cursor", "the next_cursor of an earlier answer", |text| read(&read_cursor(text)?));
    PageRequest { after, limit: limit.unwrap_or(DEFAULT_LIMIT) }
}

/// The cursor of the page after the row that has this key.
pub(super) fn cursor(key: &str) -> String {
    URL_SAFE_NO_PAD.encode(key)
}

/// The key that a cursor holds.
pub(super) fn read_cursor(cursor: &str) -> Option<String> {
    let decoded = URL_SAFE_NO_PAD.decode(cursor).ok()?;
    String::from_utf8(decoded).ok().filter(|key| !key.contains('\0'))
}

/// The query of a list, for the reference.
#[derive(utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "read by hand, so that every fault is told; documented here")]
pub(super) struct PageParameters {
    /// How many rows at most.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}
