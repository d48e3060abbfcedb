//! Things that a tool can reach.

/// One thing that a tool can reach, and the grant for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Its kind.
    pub kind: ReachKind,
    /// The thing: `api.weather.example:443`, `/data`, `WEATHER_KEY`.
    pub target: String,
    /// How it can be used: `GET, POST /v1/*`, `read-only`, `sent to api.weather.example`. May be
    /// empty.
    pub detail: String,
    /// Where the grant stands; none if the manifest as it is now does not have it.
    pub place: Option<Place>,
}

/// A place in a manifest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The file, as the command line named it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The section and key: `components.weather.network.http`. May be empty.
    pub key: String,
}

/// The kind of a thing that a tool can reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReachKind {
    /// A host on the network.
    #[default]
    Host,
    /// A folder or file.
    Folder,
    /// A secret.
    Secret,
    /// State between calls.
    State,
    /// A setting or an environment variable.
    Setting,
    /// Questions to the person or the model.
    Asking,
    /// Anything else.
    Other,
}
