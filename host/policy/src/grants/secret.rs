//! Secrets: where they come from and which requests carry them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::http::{HttpAsk, HttpRule};
use crate::diagnostic::Span;
use crate::manifest::LoginPolicy;
use crate::settings::accessors;

accessors! {
    /// One secret, without its value.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Secret {
        /// Its name, for people and for the guest it is exposed to.
        pub(crate) name: String => &str,
        /// Where a secret's value comes from.
        pub(crate) source: SecretSource => &SecretSource,
        /// The way it is used.
        pub(crate) delivery: Delivery => &Delivery,
        /// Its place in the manifest.
        pub(crate) span: Span => Span,
    }
}

/// The source of its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// `env:NAME`: a variable of the host.
    Env(String),
    /// `file:PATH`: a file that only its owner can read, relative to the manifest.
    File(String),
    /// `keyring:SERVICE/ACCOUNT`: an entry of the operating system's keyring.
    Keyring {
        /// The service.
        service: String,
        /// The account.
        account: String,
    },
    /// `oauth:NAME`: the access token of a login, which the host refreshes.
    Login(Arc<LoginPolicy>),
    /// `{ exec = […] }`: what a program of the host's machine prints.
    Program(Arc<SecretProgram>),
}

accessors! {
    /// A program that prints a secret.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct SecretProgram {
        /// Its absolute path, and its arguments.
        pub(crate) command: Vec<String> => &[String],
        /// The time for which a value holds before the program runs again.
        pub(crate) ttl: Duration => Duration,
        /// The time after that for which the last value serves while the program fails.
        pub(crate) stale: Duration => Duration,
        /// The time that a run may take.
        pub(crate) timeout: Duration => Duration,
        /// Variables that it gets, with their values.
        pub(crate) env: Vec<(String, String)> => &[(String, String)],
        /// The host's variables that it gets as well.
        pub(crate) inherit: Vec<String> => &[String],
    }
}

impl SecretProgram {
    /// The path of the program.
    #[must_use]
    pub fn path(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    /// Everything about it, as JSON.
    pub(crate) fn canonical(&self) -> serde_json::Value {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let env: std::collections::BTreeMap<_, _> = self.env.iter().cloned().collect();
        serde_json::json!({
            "exec": self.command, "ttl": millis(self.ttl), "stale": millis(self.stale),
            "timeout": millis(self.timeout), "env": env, "inherit": self.inherit,
        })
    }
}

impl fmt::Display for SecretProgram {
    /// The command as a person would type it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:@%+,".contains(&byte);
        for (place, word) in self.command.iter().enumerate() {
            let lead = if place == 0 { "" } else { " " };
            if !word.is_empty() && word.bytes().all(is_plain) {
                write!(formatter, "{lead}{word}")?;
            } else {
                write!(formatter, "{lead}{word:?}")?;
            }
        }
        Ok(())
    }
}

/// The way it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "a component has a handful of them")]
pub enum Delivery {
    /// The host puts it into a header of matching requests.
    Header {
        /// The header, in lower case.
        name: String,
        /// The header's value, with the place of the secret.
        template: SecretTemplate,
        /// The requests that carry it.
        target: HttpRule,
    },
    /// The host puts it into the query of matching requests.
    Query {
        /// The name of the query's part.
        name: String,
        /// The requests that carry it.
        target: HttpRule,
    },
    /// The guest gets it, as environment variable and as `wasi:config` value of the secret's name.
    Expose,
}

accessors! {
    /// The value of a header, the secret instead of `{}`: `Bearer {}`.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct SecretTemplate {
        /// The text before the secret.
        before: String => &str,
        /// The text after it.
        after: String => &str,
    }
}

impl Secret {
    /// True if the host adds it to a request.
    #[must_use]
    pub fn matches(&self, ask: &HttpAsk) -> bool {
        self.delivery.target().is_some_and(|target| target.matches(ask))
    }
}

impl Delivery {
    /// The requests that carry the secret.
    #[must_use]
    pub const fn target(&self) -> Option<&HttpRule> {
        match self {
            Self::Header { target, .. } | Self::Query { target, .. } => Some(target),
            Self::Expose => None,
        }
    }
}

impl SecretTemplate {
    /// A template with `{}` once; `None` for any other text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (before, after) = text.split_once("{}")?;
        (!after.contains("{}")).then(|| Self { before: before.to_owned(), after: after.to_owned() })
    }
}

impl fmt::Display for SecretTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{{}}{}", self.before, self.after)
    }
}

impl fmt::Display for SecretSource {
    /// As the manifest has it; never a value.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(formatter, "env:{name}"),
            Self::File(path) => write!(formatter, "file:{path}"),
            Self::Keyring { service, account } => write!(formatter, "keyring:{service}/{account}"),
            Self::Login(login) if login.pasted() => write!(formatter, "caller:{}", login.name()),
            Self::Login(login) => write!(formatter, "oauth:{}", login.name()),
            Self::Program(program) => write!(formatter, "exec: {program}"),
        }
    }
}
