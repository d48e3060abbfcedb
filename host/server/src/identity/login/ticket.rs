//! Tickets: the addresses at which callers begin to log in, and what their browsers carry
//! meanwhile. Both are sealed, so any replica reads them, and nobody makes or changes one.
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use toolcell_mcp::{Purpose, StateKey};
use toolcell_policy::LoginPolicy;
use toolcell_sandbox::ComponentDigest;
use zeroize::Zeroizing;

use super::error::LoginError;
use super::made::{MadeLogin, mark};

/// The least time for a person to agree. A ticket holds for up to twice as long: within such a time
/// the same call gets the same ticket, so that its question stays the same in each round.
const AGREED_WITHIN: Duration = Duration::from_secs(10 * 60);

/// Time that a used ticket or state is remembered: longer than it holds.
pub(super) const REMEMBERED_FOR: Duration = Duration::from_secs(3 * 10 * 60);

/// The longest text of a ticket, or of what a browser carries, in bytes: a cookie has 4,096.
const TEXT_BYTES_MAX: usize = 3_800;

/// What a login is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TicketSubject<'a> {
    /// The login.
    pub(crate) policy: &'a LoginPolicy,
    /// Whose login it is.
    pub(crate) caller: &'a str,
    /// The rounds of the call that asks, or its connection.
    pub(crate) session: &'a str,
    /// The component that needs it, and the digests of its bytes and its policy.
    pub(crate) component: &'a str,
    pub(crate) digest: &'a str,
    pub(crate) policy_digest: &'a str,
    /// The tool, as clients see it.
    pub(crate) tool: &'a str,
}

/// A login that a caller may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoginTicket {
    pub(crate) login: String,
    pub(crate) caller: String,
    /// A digest of the session that asked.
    session: String,
    pub(crate) component: String,
    pub(crate) digest: String,
    pub(crate) policy_digest: String,
    pub(crate) tool: String,
    /// A digest of the login's server, client and scopes.
    policy: String,
    /// The end, in seconds since 1970.
    until: u64,
}

/// A login that a browser has begun.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BegunLogin {
    pub(super) ticket: LoginTicket,
    pub(super) state: String,
    pub(super) verifier: String,
    /// The token endpoint that the code is for: no other gets it.
    pub(super) token_endpoint: String,
}

impl Drop for BegunLogin {
    fn drop(&mut self) {
        use zeroize::Zeroize as _;
        self.state.zeroize();
        self.verifier.zeroize();
    }
}

fn digest(text: &str) -> String {
    ComponentDigest::of(text.as_bytes()).to_string()
}

fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The end of a ticket that is made now.
fn end(now: Duration) -> u64 {
    let times = now.as_secs() / AGREED_WITHIN.as_secs();
    times.saturating_add(2).saturating_mul(AGREED_WITHIN.as_secs())
}

impl LoginTicket {
    pub(super) fn new(subject: &TicketSubject<'_>) -> Self {
        Self {
            login: subject.policy.name().to_owned(),
            caller: subject.caller.to_owned(),
            session: digest(subject.session),
            component: subject.component.to_owned(),
            digest: subject.digest.to_owned(),
            policy_digest: subject.policy_digest.to_owned(),
            tool: subject.tool.to_owned(),
            policy: digest(&subject.policy.canonical().to_string()),
            until: end(now()),
        }
    }

    /// Its text for an address: the same for the same call, for ten minutes at least.
    pub(super) fn sealed(&self, key: &StateKey) -> Option<String> {
        seal(self, |bytes| key.seal_same(Purpose::LoginTicket, bytes))
    }

    /// The ticket of a text; `None` if this key did not seal it.
    pub(super) fn open(key: &StateKey, text: &str) -> Option<Self> {
        open(key, Purpose::LoginTicket, text)
    }

    /// True while it holds.
    pub(super) fn holds(&self) -> bool {
        now().as_secs() < self.until
    }

    /// True if it is for this login as the manifest has it now.
    pub(super) fn is_for(&self, policy: &LoginPolicy) -> bool {
        self.login == policy.name() && self.policy == digest(&policy.canonical().to_string())
    }

    /// A name under which its use is remembered.
    pub(super) fn name(&self) -> String {
        format!("login ticket {}", digest(&serde_json::to_string(self).unwrap_or_default()))
    }
}

impl BegunLogin {
    pub(super) fn sealed(&self, key: &StateKey) -> Result<String, LoginError> {
        let sealed = seal(self, |bytes| key.seal(Purpose::LoginBegun, bytes));
        sealed.ok_or_else(|| LoginError::Random("the login cannot be sealed".to_owned()))
    }

    pub(super) fn open(key: &StateKey, text: &str) -> Option<Self> {
        open(key, Purpose::LoginBegun, text)
    }

    /// The login that it becomes.
    pub(super) fn made(&self) -> MadeLogin {
        let LoginTicket { login, caller, .. } = self.ticket.clone();
        MadeLogin { login, caller, mark: mark(&self.state) }
    }

    /// A name under which its use is remembered.
    pub(super) fn name(&self) -> String {
        format!("login state {}", digest(&self.state))
    }
}

/// A text for an address or a cookie; `None` if it is too long for that.
pub(super) fn seal(value: &impl Serialize, seal: impl FnOnce(Vec<u8>) -> Option<Vec<u8>>) -> Option<String> {
    let text = URL_SAFE_NO_PAD.encode(seal(serde_json::to_vec(value).ok()?)?);
    (text.len() <= TEXT_BYTES_MAX).then_some(text)
}

/// What this key sealed for this purpose.
pub(super) fn open<T: DeserializeOwned>(key: &StateKey, purpose: Purpose, text: &str) -> Option<T> {
    let text = Some(text).filter(|text| text.len() <= TEXT_BYTES_MAX)?;
    let mut bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text).ok()?);
    serde_json::from_slice(key.open(purpose, &mut bytes)?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::token::tests::policy_of;
    use super::*;

    #[test]
    fn a_ticket_is_the_same_for_the_same_call_and_another_for_any_other() {
        let key = StateKey::random();
        let policy = policy_of("issuer = \"https://a.example\"\nof = \"caller\"");
        let subject = TicketSubject {
            policy: &policy,
            caller: "ann",
            session: "s",
            component: "notes",
            digest: "sha256:1",
            policy_digest: "sha256:2",
            tool: "read",
        };
        let until = end(Duration::from_secs(1_000_000));
        let ticket = |subject: TicketSubject<'_>| LoginTicket { until, ..LoginTicket::new(&subject) };
        let sealed = |subject: TicketSubject<'_>| ticket(subject).sealed(&key).unwrap();
        let first = sealed(subject);
        assert_eq!(first, sealed(subject));
        assert!(first.len() < 1_500, "it fits an address of 2,048 bytes: {}", first.len());
        for other in [
            TicketSubject { caller: "bob", ..subject },
            TicketSubject { session: "t", ..subject },
            TicketSubject { component: "mail", ..subject },
            TicketSubject { digest: "sha256:3", ..subject },
            TicketSubject { policy_digest: "sha256:3", ..subject },
        ] {
            assert_ne!(first, sealed(other));
        }
        assert_eq!(LoginTicket::open(&key, &first), Some(ticket(subject)));
        assert_eq!(LoginTicket::open(&StateKey::random(), &first), None);
        for place in 0..first.len() {
            let mut changed = first.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            assert_eq!(LoginTicket::open(&key, &String::from_utf8(changed).unwrap()), None, "{place}");
        }
        assert!(BegunLogin::open(&key, &first).is_none());
        assert!(ticket(subject).is_for(&policy) && !ticket(subject).holds());
        let wider = policy_of("issuer = \"https://a.example\"\nof = \"caller\"\nscopes = [\"write\"]");
        assert!(!ticket(subject).is_for(&wider));
        assert!(LoginTicket::new(&subject).holds());
    }

    #[test]
    fn a_ticket_holds_for_ten_to_twenty_minutes() {
        for now in [0, 1, 599, 600, 1_000_000, 1_000_199] {
            let left = end(Duration::from_secs(now)) - now;
            assert!((600..=1_200).contains(&left), "{now}: {left}");
        }
    }
}
