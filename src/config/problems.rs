//! What is missing or wrong in a configuration, and the readers that find it.
//!
//! Everything is collected first and told at once, under the names that an operator set it by.

use std::{ffi::OsString, fmt, fs, str::FromStr};

use ipnet::IpNet;
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use crate::egress::Roots;

/// A secret as the operator handed it over: by the environment, or in a file.
#[derive(Debug)]
pub struct Handed {
    /// The environment variable; with `_FILE` behind it, the one that names the file.
    pub name: &'static str,
    /// The variable's value.
    pub value: Option<OsString>,
    /// The file's path.
    pub file: Option<String>,
}

/// What is missing or wrong in a configuration: one sentence each, which names the setting and never quotes a secret.
#[derive(Debug, Default)]
pub struct Problems(Vec<String>);

impl fmt::Display for Problems {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(out, "bad usage or configuration: {only}");
        }
        write!(out, "bad configuration, {} settings need attention:", self.0.len())?;
        self.0.iter().try_for_each(|problem| write!(out, "\n  - {problem}"))
    }
}

impl std::error::Error for Problems {}

impl Problems {
    /// Notes a problem.
    pub fn add(&mut self, problem: impl Into<String>) {
        self.0.push(problem.into());
    }

    /// Reads one setting; `None` if there was a problem, which is then noted.
    pub fn read<T>(&mut self, name: &str, text: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        match read(text.trim()) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.0.push(format!("{name} {problem}"));
                None
            }
        }
    }

    /// Reads a secret, which may be absent: `Some(None)`.
    pub fn optional_secret<T>(
        &mut self,
        handed: Handed,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<Option<T>> {
        let name = handed.name;
        let file = handed.file.filter(|path| !path.is_empty());
        let value = handed.value.filter(|value| !value.is_empty());
        let (name, text) = match (value, file) {
            (None, None) => return Some(None),
            (Some(_), Some(_)) => {
                self.0.push(format!("{name} and {name}_FILE are both set: keep one of them"));
                return None;
            }
            (Some(value), None) => {
                let text = value.into_string().map_err(|_| "is not UTF-8".to_owned());
                (name.to_owned(), text)
            }
            (None, Some(path)) => {
                let text =
                    fs::read_to_string(&path).map_err(|error| format!("names {path}, which cannot be read: {error}"));
                (format!("{name}_FILE"), text)
            }
        };
        let text = text.map(SecretString::from);
        self.read(&name, "", |_| read(text?.expose_secret().trim())).map(Some)
    }

    /// Reads a secret that has to be there; `missing` says what to set it to.
    pub fn secret<T>(
        &mut self,
        handed: Handed,
        missing: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let name = handed.name;
        let found = self.optional_secret(handed, read)?;
        if found.is_none() {
            self.0.push(format!("{name} (or {name}_FILE) is missing: {missing}"));
        }
        found
    }

    /// The settings, if all of them were read.
    pub fn finish<T>(self, settings: Option<T>) -> Result<T, Self> {
        match settings {
            Some(settings) if self.0.is_empty() => Ok(settings),
            _ => Err(self),
        }
    }
}

/// Reads a database's URL. The problem does not quote it, since it holds a password.
pub(super) fn database_url(text: &str) -> Result<SecretString, String> {
    const FORM: &str = "expected postgres://user:password@host:5432/database";
    let url = Url::parse(text).map_err(|error| format!("is not a URL ({error}): {FORM}"))?;
    if !matches!(url.scheme(), "postgres" | "postgresql") {
        return Err(format!("is not the URL of a Postgres: {FORM}"));
    }
    Ok(SecretString::from(text))
}

/// Reads host and port.
pub(super) fn listen(text: &str) -> Result<String, String> {
    let parts = text.rsplit_once(':').filter(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok());
    // A bare IPv6 address has colons too, and no port.
    let ambiguous = |host: &str| host.contains(':') && !host.starts_with('[');
    if parts.is_none_or(|(host, _)| ambiguous(host)) {
        return Err(format!(
            "is `{text}`: expected host:port, such as 127.0.0.1:8080, or 0.0.0.0:8080 for every interface"
        ));
    }
    Ok(text.to_owned())
}

/// Reads the URL below which webhooks reach this service.
pub(super) fn public_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let plain = |url: &Url| {
        url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none()
    };
    url.filter(plain).ok_or_else(|| {
        "is not where webhooks reach this service: expected https://host, with a path if there is one and nothing behind it".to_owned()
    })
}

/// Reads a list of address ranges, separated by commas; a bare address is a range of one.
pub(super) fn ranges(text: &str) -> Result<Vec<IpNet>, String> {
    let one = |part: &str| {
        let net = part.parse::<IpNet>().or_else(|_| part.parse().map(|ip: std::net::IpAddr| IpNet::from(ip)));
        net.map_err(|_| {
            format!("holds `{part}`, which is not an address range: expected CIDRs such as 10.1.0.0/16,fd12::/48")
        })
    };
    parts(text).map(one).collect()
}

/// Reads the file that a setting names: certificates of authorities.
pub(super) fn roots(file: &str) -> Result<Roots, String> {
    let pem = fs::read(file).map_err(|error| format!("names {file}, which cannot be read: {error}"))?;
    Roots::parse(&pem).map_err(|error| format!("names {file}, which cannot be used: {error}"))
}

/// Reads a list of ports, or `any`.
pub(super) fn ports(text: &str) -> Result<Option<Vec<u16>>, String> {
    if text == "any" {
        return Ok(None);
    }
    let one = |part: &str| {
        let port = part.parse::<u16>().ok().filter(|port| *port > 0);
        port.ok_or_else(|| format!("holds `{part}`, which is not a port: expected ports such as 443,8443, or `any`"))
    };
    parts(text).map(one).collect::<Result<_, _>>().map(Some)
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

/// Reads `true` or `false`.
pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(format!("is `{text}`: expected true or false")),
    }
}

/// Reads a whole number between two bounds.
pub(super) fn number<N: FromStr + PartialOrd + fmt::Display + Copy>(
    min: N,
    max: N,
) -> impl FnOnce(&str) -> Result<N, String> {
    move |text| {
        let number = text.parse::<N>().ok().filter(|number| *number >= min && *number <= max);
        number.ok_or_else(|| format!("is `{text}`: expected a whole number from {min} to {max}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_values() {
        for good in ["127.0.0.1:0", "[::1]:8080", "localhost:80"] {
            assert!(listen(good).is_ok(), "{good}");
        }
        for bad in ["", "8080", ":8080", "::1", "localhost", "127.0.0.1:99999"] {
            assert!(listen(bad).unwrap_err().contains("host:port"), "{bad}");
        }
        let nets = ranges(" 10.0.0.0/8, 192.0.2.7 ,::1,").unwrap();
        assert_eq!(nets.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.0/8", "192.0.2.7/32", "::1/128"]);
        assert!(ranges("10.0.0.0/33").unwrap_err().contains("10.0.0.0/33"));
        assert_eq!(ports("any"), Ok(None));
        assert_eq!(ports("443, 8443"), Ok(Some(vec![443, 8443])));
        assert!(ports("443,0").is_err());
        assert_eq!(number(1, 9)("9"), Ok(9));
        assert!(number(1, 9)("10").unwrap_err().contains("from 1 to 9"));
    }

    #[test]
    fn a_public_url_is_what_paths_can_be_put_behind() {
        for good in ["https://tools.example.com", "http://10.0.0.1:8080/", "https://example.com/tools"] {
            assert!(public_url(good).is_ok(), "{good}");
        }
        for bad in
            ["tools.example.com", "ftp://a", "https://", "https://a/?x=1", "https://a/#x", "https://u:hunter2@a/"]
        {
            assert!(!public_url(bad).unwrap_err().contains("hunter2"), "{bad}");
        }
    }

    #[test]
    fn a_database_url_is_never_quoted() {
        assert!(database_url("postgresql:///db?host=/run/postgresql&user=u").is_ok());
        for bad in ["mysql://u:hunter2@db/x", "hunter2", "postgres://u:hunter2@db:99999/x"] {
            assert!(!database_url(bad).unwrap_err().contains("hunter2"), "{bad}");
        }
    }

    #[test]
    fn secrets_come_from_one_place_and_all_problems_are_told() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "s3cret\n").unwrap();
        let path = file.path().to_str().unwrap();
        let hand =
            |value: &str, file: &str| Handed { name: "SECRET", value: Some(value.into()), file: Some(file.to_owned()) };
        let keep = |text: &str| Ok(text.to_owned());
        let mut problems = Problems::default();
        assert_eq!(problems.secret(hand("plain", ""), "", keep), Some("plain".to_owned()));
        assert_eq!(problems.secret(hand("", path), "", keep), Some("s3cret".to_owned()));
        assert_eq!(problems.optional_secret(hand("", ""), keep), Some(None));
        assert!(problems.0.is_empty());

        problems.secret(hand("plain", path), "", keep);
        problems.secret(hand("", ""), "make one", keep);
        problems.secret(hand("", "/nowhere/at-all"), "", keep);
        let text = problems.finish(Some(())).unwrap_err().to_string();
        for part in ["3 settings", "both set", "SECRET (or SECRET_FILE) is missing: make one", "/nowhere/at-all"] {
            assert!(text.contains(part), "{part} is missing from:\n{text}");
        }
    }
}
