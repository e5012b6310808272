//! Percentiles, and how figures are written.

/// What a scenario found out, as Markdown.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) text: String,
}

/// The value that so many percent of the values do not exceed.
pub(crate) fn percentile(values: &mut [u64], percent: f64) -> u64 {
    values.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a place in a list"
    )]
    let place = ((values.len() as f64 * percent / 100.0).ceil() as usize).saturating_sub(1);
    values.get(place).copied().unwrap_or_default()
}

/// Microseconds as milliseconds.
pub(crate) fn millis(micros: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let millis = micros as f64 / 1_000.0;
    format!("{millis:.2} ms")
}

/// How many times one is the other.
pub(crate) fn ratio(one: u64, other: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let (one, other) = (one as f64, other.max(1) as f64);
    one / other
}
