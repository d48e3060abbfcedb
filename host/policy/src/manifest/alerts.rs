//! The section `[alerts]`: how often something may fail before somebody is notified.

use std::time::Duration;

use crate::diagnostic::Diagnostic;
use crate::grants::HostPort;
use crate::grants::SecretSource;
use crate::quantity::{DAY, MINUTE, SECOND};
use crate::read::{Entry, Problems, Section};
use crate::rights::source_of_host;
use crate::settings::settings;

/// The longest address of a webhook, in bytes.
const URL_BYTES_MAX: usize = 2_048;

settings! {
    /// Alerts on repeated failure or denial of a tool or a caller: in the log, metrics and audit,
    /// and as a message to `url`. A threshold of 0 turns its rule off.
    AlertsPolicy ALERTS "Alerts" {
        /// Calls of one tool that fail within `window`: they trap, reach a limit or their deadline,
        /// give an invalid result, or the host fails.
        tool_failures: u64 => u64 = "tool_failures" (
            Count { min: 0, default: 20, max: 100_000 },
            "A model that tries again a few times is not an incident."
        ), {"examples": [5]};
        /// Requests of one tool within `window` that no grant allows.
        tool_denials: u64 => u64 = "tool_denials" (
            Count { min: 0, default: 20, max: 100_000 },
            "A tool that lacks a grant is denied once or twice in each call."
        ), {"examples": [1]};
        /// Calls of one caller that fail so within `window`.
        caller_failures: u64 => u64 = "caller_failures" (
            Count { min: 0, default: 50, max: 100_000 },
            "A caller has several tools."
        ), {"examples": [10]};
        /// Requests within `window` of tools of one caller's calls, that no grant allows.
        caller_denials: u64 => u64 = "caller_denials" (
            Count { min: 0, default: 50, max: 100_000 },
            "A caller has several tools."
        ), {"examples": [10]};
        /// Requests of one caller or range of addresses within `window` that are refused before
        /// they are calls: 401, 403, and tools hidden from the caller.
        refusals: u64 => u64 = "refusals" (
            Count { min: 0, default: 100, max: 100_000 },
            "A client with an expired token asks again a few times."
        ), {"examples": [20]};
        /// Runs of one secret's program that fail within `window`.
        secret_failures: u64 => u64 = "secret_failures" (
            Count { min: 0, default: 1, max: 100_000 },
            "The last value serves for minutes alone; a run that fails is repeated after ten seconds."
        ), {"examples": [3]};
        /// Time within which things are counted together.
        window: Duration => Duration = "window" (
            Millis { min: SECOND, default: 5 * MINUTE, max: DAY },
            "A loop of a model takes some seconds for each call."
        ), {"examples": ["1m"]};
        /// Time after an alert without another of the same rule for the same tool or caller.
        cooldown: Duration => Duration = "cooldown" (
            Millis { min: SECOND, default: 15 * MINUTE, max: 7 * DAY },
            "Time to look before it is reported again."
        ), {"examples": ["1h"]};
        /// Address that gets a message of each alert, by POST: https, or http of this machine.
        url: Option<String> => Option<&str> = "url" (Text, url, else None),
            {"minLength": 1, "maxLength": URL_BYTES_MAX, "examples": ["https://alerts.example.com/toolcell"]};
        /// The source of the key that signs messages: `env:NAME`, `file:PATH` or
        /// `keyring:SERVICE/ACCOUNT`. The value has at least 24 bytes, or is `whsec_` and base64.
        secret: Option<SecretSource> => Option<&SecretSource> = "secret" (Text, source_of_host, else None),
            {"minLength": 1, "examples": ["env:TOOLCELL_ALERTS_SECRET"]};
        /// True: the host of `url` may have a private address or one of this machine.
        private: bool => bool = "private" (Flag, Entry::boolean, else false), {"default": false, "examples": [true]};
    }
    other names {
        "webhook" => "url", "endpoint" => "url", "address" => "url", "key" => "secret", "token" => "secret",
        "failures" => "tool_failures", "denials" => "tool_denials", "interval" => "window",
    }
}

impl AlertsPolicy {
    /// The settings of `[alerts]`; `None` without the table.
    pub(crate) fn read_from(root: &Section<'_>, problems: &mut Problems) -> Option<Self> {
        let section = root.get("alerts")?.section(problems)?;
        let policy = Self::read(Some(&section), problems);
        let has = |key: &str| section.get(key);
        if let (Some(url), None) = (has("url"), has("secret")) {
            let problem = url.key_error("alerts::secret", "messages to url are not signed: there is no secret");
            problems.add(problem.hint("add secret = \"env:TOOLCELL_ALERTS_SECRET\""));
        }
        for key in ["secret", "private"] {
            if let (Some(said), None) = (has(key), has("url")) {
                let problem = Diagnostic::warning("alerts::unused", format!("{key} has no effect without url"));
                problems.add(problem.at(said.key_span).hint("add url, or remove it"));
            }
        }
        if let Some(said) = has("url").filter(|_| policy.url.as_ref().is_some_and(|url| url.starts_with("http:")))
            && !policy.private
        {
            let problem = said.error("alerts::url", "plain http to this machine needs private = true");
            problems.add(problem.hint("write https, or add private = true"));
        }
        Some(policy)
    }
}

/// An address of https, or of http of this machine, without a user and a fragment.
fn url(entry: &Entry<'_>, problems: &mut Problems) -> Option<String> {
    let text = entry.string(problems)?;
    let parts = ["https://", "http://"].into_iter().find_map(|scheme| Some((scheme, text.strip_prefix(scheme)?)));
    let url = parts.filter(|_| text.len() <= URL_BYTES_MAX).and_then(|(scheme, rest)| {
        let (host, path) = rest.split_at_checked(rest.find(['/', '?']).unwrap_or(rest.len()))?;
        let host = HostPort::parse(host).filter(|host| scheme == "https://" || host.is_this_machine())?;
        let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'#' | b'"' | b'<' | b'>' | b'\\');
        path.bytes().all(plain).then(|| format!("{scheme}{host}{path}"))
    });
    if url.is_some() {
        return url;
    }
    let problem = entry.error("alerts::url", format!("{text:?} is not an address that messages can be sent to"));
    problems.refuse(problem.hint("write an https address, or an http address of this machine"))
}
