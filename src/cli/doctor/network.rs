//! The network: our own ports, the way to webhooks, the way to the collector.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use url::Url;

use super::Finding;
use crate::cli::failure::causes;
use crate::config::settings::Serve;
use crate::egress::{Egress, Policy};

/// How long anybody may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Where the machines of most clouds get their credentials.
const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

/// Looks at it. `webhooks` are URLs of the tenants'.
pub(super) async fn look(settings: &Serve, webhooks: Vec<String>, findings: &mut Vec<Finding>) {
    findings.push(port("port", &settings.serving.listen, "/livez").await);
    if let Some(listen) = &settings.serving.telemetry.metrics_listen {
        findings.push(port("metrics port", listen, "/metrics").await);
    }
    findings.push(policy(&settings.egress));
    match Egress::new(settings.egress.clone()) {
        Ok(egress) => findings.push(names(&egress, &webhooks).await),
        Err(error) => findings.push(Finding::fail("egress", causes(&error), "install ca-certificates")),
    }
    if let Some(collector) = &settings.serving.telemetry.traces {
        findings.push(reach(collector).await);
    }
}

/// Whether the port is free, or one of ours has it.
async fn port(about: &'static str, listen: &str, path: &str) -> Finding {
    let Err(error) = TcpListener::bind(listen).await else {
        return Finding::ok(about, format!("{listen} is free"));
    };
    if error.kind() == ErrorKind::AddrInUse {
        if matches!(timeout(PATIENCE, answers(listen, path)).await, Ok(Ok(true))) {
            return Finding::ok(about, format!("a toolhook answers on {listen}"));
        }
        let found = format!("{listen} is taken by another program");
        return Finding::fail(about, found, "stop that, or choose another port");
    }
    Finding::fail(about, format!("{listen}: {error}"), "choose an address of this machine, and a port above 1023")
}

async fn answers(listen: &str, path: &str) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(listen).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {listen}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    // Enough for the head: whoever sends without end is not one of ours.
    stream.take(4096).read_to_end(&mut answer).await?;
    let head = String::from_utf8_lossy(&answer).to_ascii_lowercase();
    Ok(head.starts_with("http/1.1 200") && head.contains("x-request-id:"))
}

fn policy(policy: &Policy) -> Finding {
    const ABOUT: &str = "egress";
    let ports = policy.ports.as_ref().map_or_else(
        || "any port".to_owned(),
        |ports| format!("the ports {}", ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")),
    );
    let allow: Vec<String> = policy.allow.iter().map(ToString::to_string).collect();
    let also = if allow.is_empty() { String::new() } else { format!(", and {}", allow.join(", ")) };
    let scheme = if policy.plain_http { "http and https" } else { "https" };
    let found = format!("webhooks by {scheme} on {ports}, at public addresses{also}");
    if policy.allow.iter().any(|net| net.contains(&METADATA)) {
        let todo =
            "take that range out of TOOLHOOK_EGRESS_ALLOW: tenants could ask the cloud for this machine's credentials";
        return Finding::fail(ABOUT, format!("{found}: that is where clouds keep credentials"), todo);
    }
    if policy.plain_http {
        return Finding::warn(
            ABOUT,
            found,
            "inputs and secrets cross the network in the clear; unset TOOLHOOK_EGRESS_PLAIN_HTTP",
        );
    }
    Finding::ok(ABOUT, found)
}

/// Whether the names of webhooks resolve, to addresses that the policy lets through.
async fn names(egress: &Egress, webhooks: &[String]) -> Finding {
    const ABOUT: &str = "webhook names";
    if webhooks.is_empty() {
        return Finding::ok(ABOUT, "there is no webhook yet whose name could be looked up");
    }
    let mut refused = Vec::new();
    for webhook in webhooks {
        let Ok(url) = Url::parse(webhook) else { continue };
        let host = url.host_str().unwrap_or_default().to_owned();
        match timeout(PATIENCE, egress.verdict(&url)).await {
            Ok(verdict) if verdict.allowed => {}
            Ok(verdict) => refused.push(format!("{host}: {}", verdict.reason.unwrap_or_default())),
            Err(_) => refused.push(format!("{host}: the name server does not answer")),
        }
    }
    let found =
        format!("{} of {} hosts can be reached by name and policy", webhooks.len() - refused.len(), webhooks.len());
    if refused.is_empty() {
        return Finding::ok(ABOUT, found);
    }
    let found = format!("{found}; not {}", refused.join("; "));
    if refused.len() == webhooks.len() && refused.len() > 1 {
        return Finding::fail(ABOUT, found, "check this machine's name servers, and TOOLHOOK_EGRESS_ALLOW and _PORTS");
    }
    Finding::warn(ABOUT, found, "tell their owners, or allow them: calls of these tools fail")
}

/// Whether somebody listens where traces go.
async fn reach(collector: &Url) -> Finding {
    const ABOUT: &str = "traces";
    let host = collector.host_str().unwrap_or_default();
    let place = format!("{host}:{}", collector.port_or_known_default().unwrap_or_default());
    match timeout(PATIENCE, TcpStream::connect(&place)).await {
        Ok(Ok(_)) => Finding::ok(ABOUT, format!("a collector listens on {place}")),
        _ => Finding::warn(
            ABOUT,
            format!("nobody listens on {place}"),
            "start the collector, or unset the endpoint; calls go on without it",
        ),
    }
}
