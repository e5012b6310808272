//! Prometheus's text format 0.0.4, read strictly.

use super::service::TestService;
use std::collections::{BTreeMap, BTreeSet};

/// What `/metrics` said.
pub(crate) struct Exposition {
    pub(crate) text: String,
    samples: BTreeMap<String, f64>,
}

impl Exposition {
    pub(crate) async fn of(service: &TestService) -> Self {
        let answer = service.anonymous().get("/metrics").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        Self::read(answer.text())
    }

    /// Reads it, and ends at the first line that the format does not allow.
    pub(crate) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end");
        let (mut samples, mut families) = (BTreeMap::new(), BTreeSet::new());
        let (mut helped, mut family) = (None, None);
        for line in text.lines() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, words) = help.split_once(' ').unwrap();
                assert!(!words.is_empty() && families.insert(name.to_owned()), "twice, or without words: {line}");
                helped = Some(name.to_owned());
            } else if let Some(kind) = line.strip_prefix("# TYPE ") {
                let (name, kind) = kind.split_once(' ').unwrap();
                assert_eq!(helped.as_deref(), Some(name), "a type without its help: {line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                family = Some((name.to_owned(), kind.to_owned()));
            } else {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let value: f64 = value.parse().unwrap_or_else(|why| panic!("{why}: {line}"));
                let name = check_series(series);
                let (of, kind) = family.as_ref().unwrap_or_else(|| panic!("no family: {line}"));
                let suffix = name.strip_prefix(of.as_str()).unwrap_or_else(|| panic!("of another family: {line}"));
                let allowed: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                assert!(allowed.contains(&suffix), "{line}");
                assert!(kind != "counter" || (name.ends_with("_total") && value >= 0.0), "{line}");
                assert!(samples.insert(series.to_owned(), value).is_none(), "twice: {line}");
            }
        }
        check_histograms(&samples);
        Self { text: text.to_owned(), samples }
    }

    /// A sample that is a whole number; 0 if nothing was counted.
    pub(crate) fn count(&self, series: &str) -> i64 {
        self.samples.get(series).copied().unwrap_or_default().to_string().parse().unwrap()
    }

    /// Every series.
    pub(crate) fn series(&self) -> impl Iterator<Item = String> {
        self.samples.keys().cloned()
    }
}

/// Holds a series against the grammar and answers its name.
fn check_series(series: &str) -> &str {
    let word = |text: &str| {
        let starts = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        starts && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let Some((name, labels)) = series.split_once('{') else {
        assert!(word(series), "{series}");
        return series;
    };
    assert!(word(name), "{series}");
    let mut rest = labels.strip_suffix('}').unwrap_or_else(|| panic!("not closed: {series}"));
    while !rest.is_empty() {
        let (label, value) = rest.split_once("=\"").unwrap_or_else(|| panic!("no value: {series}"));
        assert!(word(label), "{series}");
        // No value of ours has a character that needs an escape.
        let (value, after) = value.split_once('"').unwrap_or_else(|| panic!("no end: {series}"));
        assert!(!value.contains(['\\', '\n']), "{series}");
        rest = after.strip_prefix(',').unwrap_or(after);
        assert!(after.is_empty() || after.len() > rest.len(), "{series}");
    }
    name
}

/// Buckets go up, end with everything, and agree with their count.
fn check_histograms(samples: &BTreeMap<String, f64>) {
    let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (series, value) in samples {
        let Some((before, after)) = series.split_once("le=\"") else { continue };
        let (bound, after) = after.split_once('"').unwrap();
        let rest = format!("{before}{}", after.trim_start_matches(','));
        buckets.entry(rest).or_default().push((bound.replace("+Inf", "inf").parse().unwrap(), *value));
    }
    assert!(!buckets.is_empty());
    for (series, mut counts) in buckets {
        counts.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(counts.is_sorted_by(|a, b| a.1 <= b.1), "{series} {counts:?}");
        let (bound, all) = *counts.last().unwrap();
        let count = series.replace("_bucket{", "_count{").replace(",}", "}").replace("{}", "");
        assert!(bound.is_infinite() && samples.get(&count) == Some(&all), "{count} {all}");
    }
}
