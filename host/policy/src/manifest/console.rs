//! The section `[console]`: where operators look at the server in a browser, and decide.

use std::net::SocketAddr;

use super::http::{HttpPolicy, ListenAddress, NAMES_MAX, TlsFiles, hosts, page_address, refuse_half_of_tls};
use crate::diagnostic::Diagnostic;
use crate::read::callers::without_token;
use crate::read::{Entry, Problems, Section, paths};
use crate::settings::settings;

settings! {
    /// The address of the operators' page, where they look and decide.
    ConsolePolicy CONSOLE "Console" {
        /// The address and port; `serve --console ADDRESS` wins. One that other machines reach
        /// needs `certificate`, `key` and `operators`.
        listen: Option<SocketAddr> => Option<SocketAddr> = "listen" (Text, listen, else None),
            {"minLength": 1, "examples": ["127.0.0.1:9465"]};
        /// True lets operators end calls, allow what was denied, approve and call tools. With false
        /// they only look.
        decide: bool => bool = "decide" (Flag, Entry::boolean, else false), {"default": false, "examples": [true]};
        /// Callers whose token signs them in, by name. Without it only the console's links let
        /// people in.
        operators: Vec<String> => &[String] = "operators" (List(&Text), operators, else Vec::new()),
            {"maxItems": NAMES_MAX, "examples": [["ann"]]};
        /// The address's other names; with a port where only that one is meant.
        hosts: Vec<String> => &[String] = "hosts" (List(&Text), hosts, else Vec::new()),
            {"maxItems": NAMES_MAX, "examples": [["toolcell.internal"]]};
        /// The TLS certificate with its chain, in PEM, relative to this file. Read again when it
        /// changes.
        certificate: Option<String> => Option<&str> = "certificate" (Text, paths::host_path, else None),
            {"minLength": 1, "examples": ["tls/console.pem"]};
        /// Its private key, in PEM, relative to this file.
        key: Option<String> => Option<&str> = "key" (Text, paths::host_path, else None),
            {"minLength": 1, "examples": ["tls/console.key"]};
    }
    other names { "address" => "listen", "bind" => "listen", "port" => "listen", "cert" => "certificate" }
}

impl ConsolePolicy {
    /// The files that the console shows in TLS handshakes; `None`: it is reached without TLS.
    #[must_use]
    pub fn tls(&self) -> Option<TlsFiles<'_>> {
        Some(TlsFiles { certificate: self.certificate()?, key: self.key()? })
    }

    /// The settings of `[console]`; `None` without the table.
    pub(crate) fn read_from(root: &Section<'_>, http: Option<&HttpPolicy>, problems: &mut Problems) -> Option<Self> {
        let section = root.get("console")?.section(problems)?;
        let console = Self::read(Some(&section), problems);
        refuse_half_of_tls(&section, problems);
        refuse_unknown_operators(&section, http, problems);
        let is_public = console.listen().is_some_and(|address| ListenAddress::Tcp(address).is_public());
        let has_tls = section.get("certificate").is_some() || section.get("key").is_some();
        if is_public
            && !has_tls
            && let Some(entry) = section.get("listen")
        {
            let problem = entry.error("console::public", "other machines reach this address, without TLS");
            problems.add(problem.hint("add certificate and key, or listen on 127.0.0.1"));
        }
        if is_public
            && section.get("operators").is_none()
            && let Some(entry) = section.get("listen")
        {
            let problem =
                entry.error("console::nobody", "other machines reach this address, and nobody signs in there");
            problems.add(problem.hint("add operators = [\"NAME\"], callers with a token, or listen on 127.0.0.1"));
        }
        Some(console)
    }
}

/// Reports operators who cannot have a token.
fn refuse_unknown_operators(section: &Section<'_>, http: Option<&HttpPolicy>, problems: &mut Problems) {
    let names = section.get("operators").and_then(|entry| entry.strings(NAMES_MAX, &mut Problems::default()));
    for (name, span) in names.unwrap_or_default() {
        if let Some((why, hint)) = without_token(http, name) {
            let message = format!("{why}; it can never sign in at the console");
            problems.add(Diagnostic::error("console::operator", message).at(span).hint(hint));
        }
    }
}

fn operators(entry: &Entry<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    let names = entry.strings(NAMES_MAX, problems)?;
    Some(names.into_iter().map(|(name, _)| name.to_owned()).collect())
}

fn listen(entry: &Entry<'_>, problems: &mut Problems) -> Option<SocketAddr> {
    page_address(entry, "console::listen", 9465, problems)
}
