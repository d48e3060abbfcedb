//! One-time links, and the sessions that they or an operator's token begin. Links and sessions are
//! stored as digests, and compared in constant time.
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use toolcell_console::model::Notice;
use toolcell_mcp::Cancellation;
use toolcell_mcp::http::CredentialValidity;
use toolcell_sandbox::ComponentDigest;

use super::decisions::DecidedBy;

/// Random bytes of a link and of a session: as many as a token has.
const SECRET_BYTES: usize = 32;

/// Characters of a secret: two for each byte.
pub const SECRET_CHARS: usize = 2 * SECRET_BYTES;

/// How long a link is valid: to open a browser, or to copy it into one.
const LINK_TIME: Duration = Duration::from_secs(10 * 60);

/// Links at a time; the oldest is dropped. `toolcell console` prints more.
const LINKS_MAX: usize = 16;

/// Longest life of a session: a working day.
const SESSION_TIME: Duration = Duration::from_secs(12 * 3_600);

/// Longest time between two requests of a session. An open page makes none: its events are one
/// request.
const SESSION_IDLE: Duration = Duration::from_secs(3_600);

/// Sessions at a time: the operators of one server. The one idle for longest is dropped.
const SESSIONS_MAX: usize = 16;

/// Hexadecimal digits by which records name a session. They admit nobody.
const NAME_CHARS: usize = 8;

/// Links and sessions.
#[derive(Default)]
pub struct Sessions(Mutex<SessionEntries>);

#[derive(Default)]
struct SessionEntries {
    links: Vec<(ComponentDigest, Instant)>,
    sessions: Vec<Session>,
}

struct Session {
    digest: ComponentDigest,
    began: Instant,
    used: Instant,
    notice: Option<Notice>,
    /// The operator whose token began it; `None` if a link did.
    operator: Option<Operator>,
}

/// A caller who signed in with a token.
#[derive(Clone, Debug)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// The token's validity. The session ends with it.
    pub validity: CredentialValidity,
}

/// A session that a request belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleSession {
    /// Its name in records.
    pub name: String,
    /// The CSRF token of its forms.
    pub csrf: String,
    /// The operator who signed in; `None` if a link began the session.
    pub operator: Option<String>,
}

/// A new session.
pub struct NewSession {
    /// The cookie's value.
    pub secret: String,
    pub name: ConsoleSession,
}

impl Sessions {
    /// A new link's secret. `Err` is one sentence.
    pub fn link(&self, now: Instant) -> Result<String, String> {
        let secret = secret()?;
        let mut entries = self.0.lock();
        entries.links.retain(|(_, until)| *until > now);
        if entries.links.len() >= LINKS_MAX {
            entries.links.remove(0);
        }
        entries.links.push((ComponentDigest::of(secret.as_bytes()), now + LINK_TIME));
        Ok(secret)
    }

    /// Begins a session with a link, which is then used up. `None` if the link is unknown or used.
    pub fn enter(&self, link: &str, now: Instant) -> Option<NewSession> {
        if link.len() != SECRET_CHARS {
            return None;
        }
        let digest = ComponentDigest::of(link.as_bytes());
        let mut entries = self.0.lock();
        entries.links.retain(|(_, until)| *until > now);
        // All are compared, so that the time does not reveal which one matches.
        let places = entries.links.iter().enumerate().filter(|(_, (known, _))| is_same(known, &digest));
        let place = places.map(|(place, _)| place).fold(None, |_, place| Some(place))?;
        entries.links.remove(place);
        entries.begin(None, now)
    }

    /// Begins a session of an operator. `None` if the system gives no random bytes.
    pub fn begin(&self, operator: Operator, now: Instant) -> Option<NewSession> {
        self.0.lock().begin(Some(operator), now)
    }

    /// The session with this secret. This counts as a use.
    pub fn find(&self, secret: &str, now: Instant) -> Option<ConsoleSession> {
        if secret.len() != SECRET_CHARS {
            return None;
        }
        let digest = ComponentDigest::of(secret.as_bytes());
        let mut entries = self.0.lock();
        entries.end_old(now);
        let session = entries.named(&digest)?;
        session.used = now;
        Some(ConsoleSession::of(&digest, secret, session.operator.as_ref()))
    }

    /// True if this is the secret of a session. This does not count as a use.
    pub fn holds(&self, secret: &str, now: Instant) -> bool {
        let mut entries = self.0.lock();
        entries.end_old(now);
        entries.named(&ComponentDigest::of(secret.as_bytes())).is_some()
    }

    /// Ends a session.
    pub fn leave(&self, secret: &str) {
        let digest = ComponentDigest::of(secret.as_bytes());
        self.0.lock().sessions.retain(|session| !is_same(&session.digest, &digest));
    }

    /// Keeps a notice for the session's next page.
    pub fn notify(&self, secret: &str, notice: Notice) {
        if let Some(session) = self.0.lock().named(&ComponentDigest::of(secret.as_bytes())) {
            session.notice = Some(notice);
        }
    }

    pub fn take_notice(&self, secret: &str) -> Option<Notice> {
        self.0.lock().named(&ComponentDigest::of(secret.as_bytes()))?.notice.take()
    }
}

impl SessionEntries {
    fn begin(&mut self, operator: Option<Operator>, now: Instant) -> Option<NewSession> {
        let secret = secret().ok()?;
        self.end_old(now);
        if self.sessions.len() >= SESSIONS_MAX {
            let idlest = self.sessions.iter().enumerate().min_by_key(|(_, session)| session.used);
            if let Some(place) = idlest.map(|(place, _)| place) {
                self.sessions.remove(place);
            }
        }
        let digest = ComponentDigest::of(secret.as_bytes());
        let name = ConsoleSession::of(&digest, &secret, operator.as_ref());
        self.sessions.push(Session { digest, began: now, used: now, notice: None, operator });
        Some(NewSession { secret, name })
    }

    fn end_old(&mut self, now: Instant) {
        self.sessions.retain(|session| {
            let is_valid = session.operator.as_ref().is_none_or(|operator| operator.holds(now));
            is_valid && session.began + SESSION_TIME > now && session.used + SESSION_IDLE > now
        });
    }

    fn named(&mut self, digest: &ComponentDigest) -> Option<&mut Session> {
        self.sessions.iter_mut().filter(|session| is_same(&session.digest, digest)).last()
    }
}

impl Operator {
    /// True while its token is neither revoked nor expired.
    fn holds(&self, now: Instant) -> bool {
        let CredentialValidity { until, revoked } = &self.validity;
        until.is_none_or(|until| until > now) && !revoked.as_ref().is_some_and(Cancellation::is_cancelled)
    }
}

impl ConsoleSession {
    /// The person of this session, for records.
    pub fn decides(&self) -> DecidedBy<'_> {
        DecidedBy { session: &self.name, operator: self.operator.as_deref() }
    }

    fn of(digest: &ComponentDigest, secret: &str, operator: Option<&Operator>) -> Self {
        let name = hex(digest.as_bytes()).chars().take(NAME_CHARS).collect();
        // Derived from the cookie, of which only a digest is kept.
        let csrf = hex(ComponentDigest::of(format!("toolcell console form\n{secret}").as_bytes()).as_bytes());
        Self { name, csrf, operator: operator.map(|operator| operator.name.clone()) }
    }

    /// The operator's name, or that of the session.
    pub fn viewer(&self) -> String {
        self.operator.clone().unwrap_or_else(|| format!("session {}", self.name))
    }

    /// True if this is the session's CSRF token.
    pub fn has_sent(&self, csrf: &str) -> bool {
        is_same(&ComponentDigest::of(self.csrf.as_bytes()), &ComponentDigest::of(csrf.as_bytes()))
    }
}

/// Compares in constant time.
fn is_same(one: &ComponentDigest, other: &ComponentDigest) -> bool {
    let differing = one.as_bytes().iter().zip(other.as_bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    std::hint::black_box(differing) == 0
}

fn secret() -> Result<String, String> {
    let mut bytes = [0_u8; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no random bytes: {error}"))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_used_once_and_in_time() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let link = sessions.link(now).unwrap();
        assert!(sessions.enter(&"0".repeat(SECRET_CHARS), now).is_none() && sessions.enter("", now).is_none());
        assert!(sessions.enter(&link, now).is_some());
        assert!(sessions.enter(&link, now).is_none(), "it is spent");
        let link = sessions.link(now).unwrap();
        assert!(sessions.enter(&link, now + LINK_TIME).is_none());
        let links: Vec<_> = (0..=LINKS_MAX).map(|_| sessions.link(now).unwrap()).collect();
        assert!(sessions.enter(&links[0], now).is_none(), "the oldest gave way");
        assert!(sessions.enter(&links[1], now).is_some());
    }

    #[test]
    fn a_session_ends_when_it_is_old_idle_left_or_gives_way() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let enter = |now| sessions.enter(&sessions.link(now).unwrap(), now).unwrap();
        let first = enter(now);
        assert_eq!(sessions.find(&first.secret, now), Some(first.name.clone()));
        assert!(sessions.holds(&first.secret, now + SESSION_IDLE / 2));
        assert!(sessions.find(&first.secret, now + SESSION_IDLE).is_none(), "idle");
        let second = enter(now);
        let mut at = now;
        while at < now + SESSION_TIME - SESSION_IDLE {
            at += SESSION_IDLE / 2;
            assert!(sessions.find(&second.secret, at).is_some());
        }
        assert!(sessions.find(&second.secret, now + SESSION_TIME).is_none(), "old");
        let third = enter(now);
        sessions.leave(&third.secret);
        assert!(sessions.find(&third.secret, now).is_none(), "left");
        let all: Vec<_> = (0..=SESSIONS_MAX as u64).map(|more| enter(now + Duration::from_secs(more))).collect();
        let later = now + Duration::from_secs(60);
        assert!(sessions.find(&all[0].secret, later).is_none(), "the idlest gave way");
        assert!(all[1..].iter().all(|session| sessions.find(&session.secret, later).is_some()));
    }

    #[test]
    fn a_session_of_an_operator_ends_with_the_token() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let revoked = Cancellation::new();
        let begin = |name: &str, validity| sessions.begin(Operator { name: name.to_owned(), validity }, now).unwrap();
        let ann = begin("ann", CredentialValidity { until: None, revoked: Some(revoked.clone()) });
        let minute = Duration::from_secs(60);
        let bob = begin("bob", CredentialValidity { until: Some(now + minute), revoked: None });
        let link = sessions.enter(&sessions.link(now).unwrap(), now).unwrap();
        let found = |session: &NewSession, at| sessions.find(&session.secret, at);
        assert_eq!(found(&ann, now).unwrap().operator.as_deref(), Some("ann"));
        assert_eq!((found(&bob, now).unwrap().viewer(), link.name.operator.clone()), ("bob".to_owned(), None));
        assert!(link.name.viewer().starts_with("session "));
        assert!(found(&bob, now + minute).is_none(), "expired");
        assert!(found(&ann, now + minute).is_some());
        revoked.cancel();
        assert!(!sessions.holds(&ann.secret, now + minute) && found(&ann, now + minute).is_none(), "revoked");
        assert!(found(&link, now + minute).is_some(), "a link's session has no token");
        let cleo = begin("cleo", CredentialValidity::default());
        assert!(found(&cleo, now + SESSION_IDLE).is_none(), "idle");
    }

    #[test]
    fn each_session_has_forms_and_notices_of_its_own() {
        let sessions = Sessions::default();
        let now = Instant::now();
        let [one, other] = [(); 2].map(|()| sessions.enter(&sessions.link(now).unwrap(), now).unwrap());
        assert!(one.name.has_sent(&one.name.csrf) && !one.name.has_sent(&other.name.csrf) && !one.name.has_sent(""));
        assert!(!one.secret.contains(&one.name.name));
        sessions.notify(&one.secret, Notice { failed: false, text: "done".to_owned() });
        assert!(sessions.take_notice(&other.secret).is_none());
        assert_eq!(sessions.take_notice(&one.secret).unwrap().text, "done");
        assert!(sessions.take_notice(&one.secret).is_none());
    }
}
