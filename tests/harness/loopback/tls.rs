//! A certificate authority for tests, and the certificates it signs.

use std::io::{Error, Read, Write};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned, SupportedProtocolVersion};

/// A client's end of a connection over TLS.
pub type TlsWire<S = std::net::TcpStream> = StreamOwned<ClientConnection, S>;

/// A certificate authority that is trusted only where a test says so.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    root: CertificateDer<'static>,
    pem: String,
}

/// A certificate with its key.
#[derive(Debug)]
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    pem: [String; 2],
    key: PrivatePkcs8KeyDer<'static>,
}

impl Authority {
    /// A new authority.
    ///
    /// # Panics
    /// If no key can be made.
    #[must_use]
    pub fn new() -> Self {
        let mut parameters = CertificateParams::new([]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let root = parameters.self_signed(&key).unwrap();
        let pem = root.pem();
        let root = root.der().clone();
        Self { issuer: Issuer::new(parameters, key), root, pem }
    }

    /// Its certificate, for `ca` in a manifest.
    #[must_use]
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for these names and addresses.
    ///
    /// # Panics
    /// If a name is invalid.
    #[must_use]
    pub fn identity(&self, names: &[&str]) -> Identity {
        self.sign(names, |_| {})
    }

    /// An expired certificate for these names and addresses.
    ///
    /// # Panics
    /// If a name is invalid.
    #[must_use]
    pub fn expired_identity(&self, names: &[&str]) -> Identity {
        self.sign(names, |parameters| {
            parameters.not_before = date_time_ymd(2001, 1, 1);
            parameters.not_after = date_time_ymd(2002, 1, 1);
        })
    }

    fn sign(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut parameters = CertificateParams::new(names).unwrap();
        change(&mut parameters);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        let pem = [certificate.pem(), key.serialize_pem()];
        Identity { chain: vec![certificate.der().clone()], pem, key: PrivatePkcs8KeyDer::from(key.serialize_der()) }
    }

    /// Makes a handshake with a server that should have this name, and trusts only this authority.
    ///
    /// # Errors
    /// The handshake fails.
    ///
    /// # Panics
    /// If the name is invalid.
    pub fn connect<S: Read + Write>(
        &self,
        name: &str,
        mut stream: S,
        versions: &[&'static SupportedProtocolVersion],
        protocols: &[&str],
    ) -> std::io::Result<TlsWire<S>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_protocol_versions(versions).unwrap();
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(config), name).map_err(Error::other)?;
        while client.is_handshaking() {
            client.complete_io(&mut stream)?;
        }
        Ok(StreamOwned::new(client, stream))
    }
}

impl Default for Authority {
    fn default() -> Self {
        Self::new()
    }
}

impl Identity {
    /// Its certificate.
    #[must_use]
    pub fn chain_pem(&self) -> String {
        self.pem[0].clone()
    }

    /// Its key.
    #[must_use]
    pub fn key_pem(&self) -> String {
        self.pem[1].clone()
    }

    /// The configuration of a server with this identity that offers these protocols.
    pub(super) fn server(&self, protocols: &[&[u8]]) -> Arc<ServerConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(self.key.clone_key());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), key)
            .unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }
}
