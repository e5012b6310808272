//! Lists in pages: the rows after the last one that was seen, in a stable order.

/// Which part of a list is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest<K> {
    /// The key of the last row that was seen; none for the first page.
    pub after: Option<K>,
    /// The most rows, 1 to 200.
    pub limit: i64,
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// Whether there are more after them.
    pub more: bool,
}

impl<T> Page<T> {
    /// Makes a page of rows that were asked for with a limit of one more than wanted.
    pub(super) fn of(mut rows: Vec<T>, limit: i64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = rows.len() > limit;
        rows.truncate(limit);
        Self { rows, more }
    }
}
