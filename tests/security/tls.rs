//! Servers that speak TLS, with certificates good and bad.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, Stream};

/// Somebody who certifies servers.
pub(crate) struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// What is to be thought of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certificate {
    Good,
    Expired,
    OfAnotherName,
    SelfSigned,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// A server at 127.0.0.1 that offers these protocols.
    pub(crate) fn server(&self, certificate: Certificate, protocols: &[&str]) -> Arc<ServerConfig> {
        let name = if certificate == Certificate::OfAnotherName { "127.0.0.9" } else { "127.0.0.1" };
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        if certificate == Certificate::Expired {
            (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 1, 1));
        }
        let key = KeyPair::generate().unwrap();
        let signed = match certificate {
            Certificate::SelfSigned => params.self_signed(&key),
            _ => params.signed_by(&key, &self.issuer),
        };
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = config.with_single_cert(vec![signed.unwrap().der().clone()], private).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

/// Speaks TLS over a connection.
pub(crate) fn over<T>(
    config: &Arc<ServerConfig>,
    connection: &mut TcpStream,
    speak: impl FnOnce(&mut Stream<'_, ServerConnection, TcpStream>) -> io::Result<T>,
) -> io::Result<T> {
    let mut session = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    speak(&mut Stream::new(&mut session, connection))
}
