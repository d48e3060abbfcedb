//! Reasons why nothing is pulled, pushed or stored: each one sentence, with a hint where a person
//! can do something.
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use toolcell_outbound::{NotFollowed, OutboundError, shown};
use toolcell_policy::{AddressClass, Digest};
use url::Url;

/// Way in which a layer is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip, RFC 1952.
    Gzip,
    /// Zstandard, RFC 8878.
    Zstd,
    /// Any other coding of HTTP.
    Other,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Other => "another coding",
        })
    }
}

/// The step of an exchange that establishes the connection.
const CONNECTING: &str = "take a connection";

/// Why a pull, a push or a look-up failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PullError {
    /// A key of the settings has another form.
    #[error("the settings of the registry {host} cannot be used: {problem}")]
    Settings {
        /// The registry.
        host: String,
        /// The key, and what is wrong.
        problem: String,
    },
    /// The reference has no digest, and this step needs one.
    #[error("{0} has no digest: resolve it first")]
    NoDigest(String),
    /// The reference has no tag, and this step needs one.
    #[error("{0} has no tag")]
    NoTag(String),
    /// Every address of the host is of a class that is not connected to.
    #[error("{host} is not asked: {address} is {}", class.describe())]
    Address {
        /// The host.
        host: String,
        /// The first of its addresses.
        address: std::net::IpAddr,
        /// Its class.
        class: AddressClass,
    },
    /// Plain HTTP to a host that is not this machine.
    #[error("{0} is not asked over plain HTTP")]
    PlainHttp(String),
    /// Name look-up, TCP or TLS failed.
    #[error("no connection to {host}: {source}")]
    Connect {
        /// The host.
        host: String,
        /// The reason.
        #[source]
        source: std::io::Error,
    },
    /// It took too long.
    #[error("{host} does not {step} within {within:?}")]
    Late {
        /// The host.
        host: String,
        /// A verb and its object.
        step: &'static str,
        /// The bound.
        within: Duration,
    },
    /// A body arrives too slowly.
    #[error("{host} sends less than {bytes} bytes in {within:?}")]
    Slow {
        /// The host.
        host: String,
        /// The least number of bytes.
        bytes: u64,
        /// The window in which they have to arrive.
        within: Duration,
    },
    /// The answer is not HTTP, or was cut off.
    #[error("the answer of {host} breaks off: {problem}")]
    Broken {
        /// The host.
        host: String,
        /// The HTTP library's message.
        problem: String,
    },
    /// A redirect that is not followed.
    #[error("{host} redirects to {to}, {problem}")]
    Redirect {
        /// The host.
        host: String,
        /// Where to, without a query.
        to: String,
        /// A part of a sentence that begins with "which" or "but".
        problem: &'static str,
    },
    /// An answer's body is longer than any of its kind may be.
    #[error("{what} of {host} has more than {max} bytes")]
    TooLarge {
        /// The host.
        host: String,
        /// The kind of body.
        what: &'static str,
        /// The bound, in bytes.
        max: u64,
    },
    /// The component is longer than the caller allows.
    #[error("the component {digest} has {bytes} bytes, at most {max} are allowed")]
    ComponentTooLarge {
        /// Digest of its layer.
        digest: Digest,
        /// Its size, as the manifest says.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// The registry requires credentials, or other ones.
    #[error("{host} wants {} for {repository}", if *.had_credential { "other credentials" } else { "credentials" })]
    Unauthorized {
        /// The host.
        host: String,
        /// The repository.
        repository: String,
        /// True if credentials were sent.
        had_credential: bool,
    },
    /// Credentials were withheld, because others could read them.
    #[error("credentials for {host} are not sent to {to}: {problem}")]
    CredentialKept {
        /// The registry.
        host: String,
        /// Where they would have gone.
        to: String,
        /// The reason.
        problem: &'static str,
    },
    /// The registry forbids it.
    #[error("{host} does not allow to {step} {repository}")]
    Forbidden {
        /// The host.
        host: String,
        /// `pull` or `push`.
        step: &'static str,
        /// The repository.
        repository: String,
    },
    /// The registry does not have it.
    #[error("{host} does not have {what}")]
    NotFound {
        /// The host.
        host: String,
        /// The reference or digest.
        what: String,
    },
    /// The digest is gone, and its tag names another one.
    #[error("{reference} is gone: its tag now names {now}")]
    TagMoved {
        /// The reference, with the digest that is gone.
        reference: String,
        /// Digest that the tag names.
        now: Digest,
    },
    /// Too many requests.
    #[error("{0} got too many requests, and refuses more for now")]
    RateLimited(String),
    /// Any other status.
    #[error("{host} answers with status {status}{}", code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default())]
    Status {
        /// The host.
        host: String,
        /// The status of HTTP.
        status: u16,
        /// The registry's error code, such as `MANIFEST_INVALID`.
        code: Option<String>,
    },
    /// The bytes do not match the digest.
    #[error("{host} sends bytes for {expected} whose digest is {found}")]
    WrongDigest {
        /// The host.
        host: String,
        /// The expected digest.
        expected: Digest,
        /// The digest of the received bytes.
        found: Digest,
    },
    /// More bytes than the descriptor says.
    #[error("{host} sends more than the {said} bytes that {digest} has")]
    Longer {
        /// The host.
        host: String,
        /// Digest of the layer, or of a manifest in an index.
        digest: Digest,
        /// Size that the manifest or the index says.
        said: u64,
    },
    /// Fewer bytes than the descriptor says.
    #[error("{host} sends {found} bytes of the {said} that {digest} has")]
    Shorter {
        /// The host.
        host: String,
        /// Digest of the layer, or of a manifest in an index.
        digest: Digest,
        /// Size that the manifest or the index says.
        said: u64,
        /// Bytes that came.
        found: u64,
    },
    /// A document of another form.
    #[error("{what} is not understood: {problem}")]
    Document {
        /// The document: its digest or its kind.
        what: String,
        /// Reason.
        problem: String,
    },
    /// No layer is a component.
    #[error("{digest} holds no component: its layers are {layers}")]
    NoComponent {
        /// Digest of the manifest.
        digest: Digest,
        /// Media types of the first layers.
        layers: String,
    },
    /// More than one layer is a component.
    #[error("{digest} holds {count} components, and one is expected")]
    SeveralComponents {
        /// Digest of the manifest or the index.
        digest: Digest,
        /// Their number.
        count: usize,
    },
    /// A compressed layer.
    #[error("the layer {digest} is compressed with {compression}")]
    Compressed {
        /// Digest of the layer.
        digest: Digest,
        /// The way it is compressed.
        compression: Compression,
    },
    /// An index that is for machines only.
    #[error("{digest} is an image for {platforms}, and holds no component")]
    OtherPlatforms {
        /// Digest of the index.
        digest: Digest,
        /// The first platforms.
        platforms: String,
    },
    /// The token server returned none.
    #[error("no token from {realm}: {problem}")]
    Token {
        /// Host of the token server.
        realm: String,
        /// Reason.
        problem: String,
    },
    /// A file of credentials cannot be used.
    #[error("the credentials in {path} cannot be read: {problem}")]
    CredentialFile {
        /// The file.
        path: PathBuf,
        /// Reason.
        problem: String,
    },
    /// A credential helper gives nothing.
    #[error("the credential helper {name:?} gives no credentials: {problem}")]
    Helper {
        /// Its name, without `docker-credential-`.
        name: String,
        /// Reason.
        problem: String,
    },
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PullError {
    /// Advice to a person, where there is some.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Address { class: AddressClass::Metadata, .. } => Some("no setting allows addresses of metadata"),
            Self::Address { .. } => Some("mark the registry as private if it is in your own network"),
            Self::PlainHttp(_) => Some("have the registry serve https, or allow plain HTTP for it"),
            Self::Connect { .. } => Some("is the name right, and is its certificate of a known authority?"),
            Self::Late { .. } | Self::Slow { .. } | Self::Broken { .. } => {
                Some("pull again: the download continues where it stopped")
            }
            Self::Redirect { .. } => Some("name the registry that it leads to"),
            Self::Unauthorized { had_credential: false, .. } => {
                Some("log in first, for example with `docker login` or `oras login`")
            }
            Self::Unauthorized { .. } => Some("log in again: the password or token may have expired"),
            Self::CredentialKept { .. } => Some("have the registry serve https"),
            Self::Forbidden { .. } => Some("ask the repository's owner for the right, or log in as somebody else"),
            Self::NotFound { .. } => {
                Some("are name and tag right? Some registries say this where one has to log in first")
            }
            Self::TagMoved { .. } => Some("update the lock, and look at what has changed before you approve it"),
            Self::RateLimited(_) => Some("try later, or log in: registries then allow more"),
            Self::WrongDigest { .. } | Self::Longer { .. } | Self::Shorter { .. } => {
                Some("the registry or somebody on the way changes what it sends: do not use it")
            }
            Self::NoComponent { .. } | Self::OtherPlatforms { .. } => {
                Some("name an artifact with a layer \"application/wasm\", as `wkg oci push` makes it")
            }
            Self::SeveralComponents { .. } => Some("name the digest of the one that is meant"),
            Self::Compressed { .. } => Some("push the component uncompressed, as `wkg oci push` does"),
            Self::ComponentTooLarge { .. } => Some("larger components are not loaded: build a smaller one"),
            Self::NoDigest(_) | Self::NoTag(_) => Some("add it to the reference"),
            Self::CredentialFile { .. } => Some("log in again, which writes the file anew"),
            Self::Helper { .. } => Some("run `docker-credential-NAME get` by yourself, or log in without a helper"),
            Self::Settings { .. } => Some("correct the settings of this registry"),
            Self::Store(error) => error.hint(),
            Self::TooLarge { .. } | Self::Status { .. } | Self::Document { .. } | Self::Token { .. } => None,
        }
    }

    /// The error of a request to this address.
    pub(crate) fn outbound(url: &Url, error: OutboundError) -> Self {
        let host = shown(url);
        match error {
            OutboundError::Refused(address, class) => Self::Address { host, address, class },
            OutboundError::Connect(source) => Self::Connect { host, source },
            OutboundError::ConnectTime(within) => Self::Late { host, step: CONNECTING, within },
            OutboundError::TlsTime(within) => Self::Late { host, step: "agree on TLS", within },
            error => Self::Broken { host, problem: error.to_string() },
        }
    }

    /// The error of a redirect of the server of this address.
    pub(crate) fn not_followed(url: &Url, NotFollowed { to, problem }: NotFollowed) -> Self {
        Self::Redirect { host: shown(url), to, problem }
    }

    /// True if no server was reached, perhaps because the network is down.
    #[must_use]
    pub fn is_unreached(&self) -> bool {
        match self {
            // A server whose certificate is rejected was reached.
            Self::Connect { source, .. } => source.kind() != std::io::ErrorKind::InvalidData,
            Self::Late { step, .. } => *step == CONNECTING,
            _ => false,
        }
    }

    /// True if a later attempt may succeed.
    pub(crate) const fn is_of_the_connection(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Late { .. } | Self::Slow { .. } | Self::Broken { .. } => true,
            Self::RateLimited(_) => true,
            Self::Status { status, .. } => *status >= 500,
            _ => false,
        }
    }

    /// True if the registry's bytes differ from what it announced.
    pub(crate) const fn is_a_lie(&self) -> bool {
        matches!(self, Self::Longer { .. } | Self::Shorter { .. } | Self::WrongDigest { .. } | Self::Compressed { .. })
    }
}

/// Why an operation on the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file or folder of the store cannot be used.
    #[error("{step} {path} fails: {source}")]
    Files {
        /// A verb in its -ing form.
        step: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Reason.
        #[source]
        source: std::io::Error,
    },
    /// The folder is something else than a store.
    #[error("{path} is not a component store: {problem}")]
    NotAStore {
        /// The folder.
        path: PathBuf,
        /// Reason.
        problem: String,
    },
    /// `index.json` cannot be read.
    #[error("{path} is not understood: {problem}")]
    Index {
        /// The file.
        path: PathBuf,
        /// Reason.
        problem: String,
    },
    /// The store does not have it.
    #[error("the store does not have {0}")]
    Missing(Digest),
    /// The bytes on disk do not match the digest.
    #[error("{path} was changed: its digest is not its name")]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file's size differs from the manifest's.
    #[error("{path} was changed: it does not have {said} bytes")]
    Size {
        /// The file.
        path: PathBuf,
        /// Size that the manifest says.
        said: u64,
    },
    /// The component is larger than the caller allows. It was not read.
    #[error("the component {digest} has {bytes} bytes, at most {max} are allowed")]
    ComponentTooLarge {
        /// Digest of its layer.
        digest: Digest,
        /// Its size, as the manifest says.
        bytes: u64,
        /// The bound.
        max: u64,
    },
    /// A stored document of another form.
    #[error("the stored {digest} is not understood: {problem}")]
    Document {
        /// Its digest.
        digest: Digest,
        /// Reason.
        problem: String,
    },
    /// Another process uses the store.
    #[error("another process {0}")]
    Busy(&'static str),
    /// The store is full.
    #[error("the store has {0} entries, the most allowed")]
    Full(usize),
    /// `index.json` has reached its largest size.
    #[error("the store's index.json would have more than {0} bytes, the most allowed")]
    FullIndex(u64),
    /// The archive does not have the expected form.
    #[error("the archive is refused: {0}")]
    Archive(String),
    /// The archive cannot be read or written.
    #[error("the archive cannot be {step}: {source}")]
    ArchiveFile {
        /// `read` or `written`.
        step: &'static str,
        /// Reason.
        #[source]
        source: std::io::Error,
    },
}

impl StoreError {
    /// Advice to a person, where there is some.
    #[must_use]
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing(_) => Some("pull it first"),
            Self::Changed { .. } | Self::Size { .. } | Self::Document { .. } => {
                Some("somebody or a failing disk changed the store: remove the file, and pull again")
            }
            Self::ComponentTooLarge { .. } => Some("larger components are not loaded: build a smaller one"),
            Self::Index { .. } => {
                Some("remove the file, and pull again: components in the store are not downloaded twice")
            }
            Self::NotAStore { .. } => Some("name an empty folder, or one that does not exist"),
            Self::Busy(_) => Some("try again once it is done"),
            Self::Full(_) | Self::FullIndex(_) => Some("remove what nobody needs"),
            Self::Archive(_) => Some("export it again from a store, or use an OCI layout as `oras` writes it"),
            Self::Files { .. } | Self::ArchiveFile { .. } => None,
        }
    }

    /// Makes an error of a file operation.
    pub(crate) fn files(step: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Files { step, path, source }
    }
}
