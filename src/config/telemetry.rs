//! Where operators look: metrics and traces.

use clap::Args;
use url::Url;

use super::problems::{self, Problems};
use super::{settings, variable};

/// The variables that OpenTelemetry's specification has for the same, the more specific one first.
const STANDARD: [(&str, bool); 2] =
    [("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", true), ("OTEL_EXPORTER_OTLP_ENDPOINT", false)];

#[derive(Debug, Args)]
#[command(next_help_heading = "Telemetry")]
pub(super) struct Telemetry {
    /// Host and port for /metrics alone; without it, /metrics is on the main port
    #[arg(
        long,
        env = "TOOLHOOK_METRICS_LISTEN",
        value_name = "HOST:PORT",
        default_value = "",
        hide_default_value = true
    )]
    metrics_listen: String,
    /// A collector for traces by OTLP (http/protobuf), such as <http://localhost:4318>; without it, or
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`, there are no traces
    #[arg(long, env = "TOOLHOOK_OTLP_ENDPOINT", value_name = "URL", default_value = "", hide_default_value = true)]
    otlp_endpoint: String,
}

impl Telemetry {
    pub(super) fn check(&self, problems: &mut Problems) -> Option<settings::Telemetry> {
        let metrics = match self.metrics_listen.trim() {
            "" => Some(None),
            listen => problems.read("TOOLHOOK_METRICS_LISTEN", listen, problems::listen).map(Some),
        };
        let traces = match self.collector() {
            None => Some(None),
            Some((name, whole, text)) => problems.read(name, &text, |text| endpoint(text, whole)).map(Some),
        };
        Some(settings::Telemetry { metrics_listen: metrics?, traces: traces? })
    }

    /// The collector, the variable that names it, and whether that is the whole URL.
    fn collector(&self) -> Option<(&'static str, bool, String)> {
        let ours = Some(("TOOLHOOK_OTLP_ENDPOINT", false, self.otlp_endpoint.clone()));
        let standard = STANDARD.iter().map(|(name, whole)| {
            let text = variable(name)?.into_string().unwrap_or_else(|_| "not UTF-8".to_owned());
            Some((*name, *whole, text))
        });
        std::iter::once(ours).chain(standard).flatten().find(|(_, _, text)| !text.trim().is_empty())
    }
}

/// Reads a collector's URL; the path for traces is added unless it is the `whole` one.
fn endpoint(text: &str, whole: bool) -> Result<Url, String> {
    let base = text.trim_end_matches('/');
    let url = Url::parse(&if whole { text.to_owned() } else { format!("{base}/v1/traces") });
    match url {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        _ => Err("is not the URL of a collector: expected http://host:4318".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::endpoint;

    #[test]
    fn the_path_for_traces_is_added() {
        for base in ["http://c:4318", "http://c:4318/"] {
            assert_eq!(endpoint(base, false).unwrap().as_str(), "http://c:4318/v1/traces");
        }
        assert_eq!(endpoint("https://c/x", false).unwrap().as_str(), "https://c/x/v1/traces");
        assert_eq!(endpoint("https://c/x", true).unwrap().as_str(), "https://c/x");
        for bad in ["c:4318", "grpc://c:4317", ""] {
            assert!(endpoint(bad, false).is_err(), "{bad}");
        }
    }
}
