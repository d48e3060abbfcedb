//! An authorization server, as far as a resource server needs one: metadata, keys, and tokens of
//! any kind, right or wrong. It can stop answering and start again, and it can change its keys.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{
    self, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _, RsaEncoding, RsaKeyPair,
    RsaPublicKeyComponents,
};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::Identity;

/// Test keys, which protect nothing, for algorithms whose keys cannot be made here.
const RSA: &[u8] = include_bytes!("keys/rsa.der");
const ED25519: &[u8] = include_bytes!("keys/ed25519.der");

/// A signature algorithm, by its name in a token's header (RFC 7518 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Algorithm {
    HS256,
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

/// A key that signs tokens.
#[derive(Clone)]
pub struct SigningKey {
    kid: String,
    algorithm: Algorithm,
    key: Arc<Key>,
}

enum Key {
    Shared(hmac::Key),
    Rsa(RsaKeyPair, &'static dyn RsaEncoding),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningKey").field("kid", &self.kid).field("algorithm", &self.algorithm).finish()
    }
}

/// A running issuer.
#[derive(Debug)]
pub struct Issuer {
    name: String,
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    keys: Mutex<Vec<Value>>,
    is_down: AtomicBool,
    is_over: AtomicBool,
    asked: AtomicUsize,
}

/// The time that many seconds from now, in seconds since 1970.
#[must_use]
pub fn seconds_from_now(later: i64) -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    i64::try_from(now).unwrap() + later
}

impl Key {
    fn rsa(encoding: &'static dyn RsaEncoding) -> Self {
        Self::Rsa(RsaKeyPair::from_der(RSA).unwrap(), encoding)
    }

    fn ec(kind: &'static EcdsaSigningAlgorithm) -> Self {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self::Ec(EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap())
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::Shared(key) => hmac::sign(key, message).as_ref().to_vec(),
            Self::Rsa(pair, encoding) => {
                let mut signed = vec![0; pair.public().modulus_len()];
                pair.sign(*encoding, &random, message, &mut signed).unwrap();
                signed
            }
            Self::Ec(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Self::Ed(pair) => pair.sign(message).as_ref().to_vec(),
        }
    }

    /// The public part as a JSON Web Key (RFC 7517).
    fn public(&self) -> Value {
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        match self {
            Self::Shared(_) => panic!("a shared key has no public part"),
            Self::Rsa(pair, _) => {
                let components: RsaPublicKeyComponents<Vec<u8>> = pair.public().into();
                json!({"kty": "RSA", "n": text(&components.n), "e": text(&components.e)})
            }
            Self::Ec(pair) => {
                // An uncompressed point: the byte 4, then both coordinates.
                let (x, y) = pair.public_key().as_ref()[1..].split_at(pair.public_key().as_ref().len() / 2);
                let curve = if x.len() == 32 { "P-256" } else { "P-384" };
                json!({"kty": "EC", "crv": curve, "x": text(x), "y": text(y)})
            }
            Self::Ed(pair) => json!({"kty": "OKP", "crv": "Ed25519", "x": text(pair.public_key().as_ref())}),
        }
    }
}

impl SigningKey {
    /// A key of this name for this algorithm. Keys for `ES256` and `ES384` are new; those for the
    /// others are fixed.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn new(kid: &str, algorithm: Algorithm) -> Self {
        let key = match algorithm {
            Algorithm::HS256 => Key::Shared(hmac::Key::new(hmac::HMAC_SHA256, b"a secret that both know")),
            Algorithm::RS256 => Key::rsa(&signature::RSA_PKCS1_SHA256),
            Algorithm::RS384 => Key::rsa(&signature::RSA_PKCS1_SHA384),
            Algorithm::RS512 => Key::rsa(&signature::RSA_PKCS1_SHA512),
            Algorithm::PS256 => Key::rsa(&signature::RSA_PSS_SHA256),
            Algorithm::PS384 => Key::rsa(&signature::RSA_PSS_SHA384),
            Algorithm::PS512 => Key::rsa(&signature::RSA_PSS_SHA512),
            Algorithm::ES256 => Key::ec(&signature::ECDSA_P256_SHA256_FIXED_SIGNING),
            Algorithm::ES384 => Key::ec(&signature::ECDSA_P384_SHA384_FIXED_SIGNING),
            Algorithm::EdDSA => Key::Ed(Ed25519KeyPair::from_pkcs8_maybe_unchecked(ED25519).unwrap()),
        };
        Self { kid: kid.to_owned(), algorithm, key: Arc::new(key) }
    }

    /// A key that signs with a shared secret, namely the public part of this key, under the same
    /// name.
    #[must_use]
    pub fn confused(&self) -> Self {
        let public = self.public()["x"].as_str().unwrap_or_default().to_owned();
        let key = Key::Shared(hmac::Key::new(hmac::HMAC_SHA256, public.as_bytes()));
        Self { kid: self.kid.clone(), algorithm: Algorithm::HS256, key: Arc::new(key) }
    }

    /// This key under another name.
    #[must_use]
    pub fn named(&self, kid: &str) -> Self {
        Self { kid: kid.to_owned(), ..self.clone() }
    }

    /// Its public part, as issuers publish it.
    ///
    /// # Panics
    /// If it has none.
    #[must_use]
    pub fn public(&self) -> Value {
        let mut public = self.key.public();
        public["kid"] = self.kid.clone().into();
        public["alg"] = format!("{:?}", self.algorithm).into();
        public["use"] = "sig".into();
        public
    }

    /// A token with these claims that names the key.
    #[must_use]
    pub fn token(&self, claims: &Value) -> String {
        self.signed(&json!({"typ": "JWT", "alg": format!("{:?}", self.algorithm), "kid": self.kid}), claims)
    }

    /// A token with these claims that names no key.
    #[must_use]
    pub fn anonymous_token(&self, claims: &Value) -> String {
        self.signed(&json!({"typ": "JWT", "alg": format!("{:?}", self.algorithm)}), claims)
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        let encoded = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let signature = URL_SAFE_NO_PAD.encode(self.key.sign(message.as_bytes()));
        format!("{message}.{signature}")
    }
}

impl Issuer {
    /// An issuer on 127.0.0.1 with these keys.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn start(keys: &[&SigningKey]) -> Self {
        Self::listening(keys, None)
    }

    /// An issuer on 127.0.0.1 with these keys that speaks TLS with this identity.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn secure(keys: &[&SigningKey], identity: &Identity) -> Self {
        Self::listening(keys, Some(identity.server(&[b"http/1.1"])))
    }

    fn listening(keys: &[&SigningKey], tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let name = format!("{}://{address}", if tls.is_some() { "https" } else { "http" });
        let said = name.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.is_over.load(Ordering::SeqCst) {
                    return;
                }
                // The test decides about a client that goes away or does not trust the certificate.
                let _ = match &tls {
                    None => answer(stream, &said, &shared),
                    Some(config) => {
                        let wire = ServerConnection::new(Arc::clone(config)).unwrap();
                        answer(StreamOwned::new(wire, stream), &said, &shared)
                    }
                };
            }
        });
        let issuer = Self { name, address, state };
        issuer.publishes(keys);
        issuer
    }

    /// The `iss` claim of its tokens.
    #[must_use]
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Publishes these keys from now on.
    ///
    /// # Panics
    /// If a thread panicked.
    pub fn publishes(&self, keys: &[&SigningKey]) {
        *self.state.keys.lock().unwrap() = keys.iter().map(|key| key.public()).collect();
    }

    /// With `true` it answers from now on; with `false` it closes each connection without an
    /// answer.
    pub fn answers(&self, answers: bool) {
        self.state.is_down.store(!answers, Ordering::SeqCst);
    }

    /// The number of requests for its keys.
    #[must_use]
    pub fn asked(&self) -> usize {
        self.state.asked.load(Ordering::SeqCst)
    }

    /// The claims of a token that is valid for five minutes, with this subject, audience and scope.
    #[must_use]
    pub fn claims(&self, subject: &str, audience: &str, scope: &str) -> Value {
        json!({
            "iss": self.name(), "sub": subject, "aud": audience, "scope": scope,
            "iat": seconds_from_now(0), "exp": seconds_from_now(300),
        })
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
    }
}

fn answer(stream: impl Read + Write, name: &str, state: &State) -> std::io::Result<()> {
    if state.is_down.load(Ordering::SeqCst) {
        return Ok(());
    }
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let (status, body) = match head.split(' ').nth(1).unwrap_or_default() {
        "/keys" => {
            state.asked.fetch_add(1, Ordering::SeqCst);
            ("200 OK", json!({"keys": *state.keys.lock().unwrap()}))
        }
        "/.well-known/openid-configuration" => ("200 OK", json!({"issuer": name, "jwks_uri": format!("{name}/keys")})),
        _ => ("404 Not Found", json!({})),
    };
    let body = body.to_string();
    let stream = stream.get_mut();
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())?;
    stream.flush()
}
