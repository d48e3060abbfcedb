//! The content of a login's file.
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcell_mcp::{Purpose, StateKey};
use toolcell_policy::{ClientAuth, LoginPolicy};
use toolcell_sandbox::SecretValue;
use zeroize::Zeroizing;

use super::endpoints::Endpoints;
use super::token::Tokens;

/// The only version of the file's format.
const VERSION: u32 = 1;

/// A login as it is stored.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    version: u32,
    /// The server, and what to request from it, as the manifest had it at the login.
    login: Value,
    /// The token endpoint that the login was made at.
    pub(super) token_endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    revocation_endpoint: Option<String>,
    client_auth: String,
    pub(super) access_token: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    /// The time at which the access token was asked for, in seconds since 1970.
    since: u64,
    /// The end of the access token, in seconds since 1970; none where the server does not say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    /// A name that the browser which made the login knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    mark: Option<String>,
    /// Why the server gives no more tokens, where it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
}

/// A caller's login, as it is before it is sealed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallerRecord {
    pub(super) login: String,
    pub(super) caller: String,
    pub(super) record: Record,
}

/// As [`CallerRecord`], borrowed.
#[derive(Serialize)]
struct CallerRecordText<'r> {
    login: &'r str,
    caller: &'r str,
    record: &'r Record,
}

impl CallerRecord {
    /// The bytes to seal.
    pub(super) fn bytes(login: &str, caller: &str, record: &Record) -> Option<Zeroizing<Vec<u8>>> {
        serde_json::to_vec(&CallerRecordText { login, caller, record }).ok().map(Zeroizing::new)
    }

    /// The record of sealed bytes; `None` if this key did not seal them.
    pub(super) fn open(key: &StateKey, bytes: &[u8]) -> Option<Self> {
        let mut bytes = Zeroizing::new(bytes.to_vec());
        let opened: Self = serde_json::from_slice(key.open(Purpose::Login, &mut bytes)?).ok()?;
        opened.record.is_sound().then_some(opened)
    }
}

impl Record {
    pub(super) fn new(policy: &LoginPolicy, endpoints: &Endpoints, tokens: Tokens, now: SystemTime) -> Self {
        let auth = match endpoints.auth {
            ClientAuth::Basic => "basic",
            ClientAuth::Post => "post",
        };
        let mut record = Self {
            version: VERSION,
            login: policy.canonical(),
            token_endpoint: endpoints.token.clone(),
            revocation_endpoint: endpoints.revoke.clone(),
            client_auth: auth.to_owned(),
            access_token: String::new(),
            refresh_token: None,
            since: 0,
            until: None,
            scope: None,
            mark: None,
            ended: None,
        };
        record.renew(tokens, now);
        record
    }

    /// A key that a caller pasted. It holds until it is revoked.
    pub(super) fn of_pasted(policy: &LoginPolicy, key: &Zeroizing<String>, now: SystemTime) -> Self {
        let endpoints = Endpoints {
            issuer: None,
            authorize: None,
            token: String::new(),
            device: None,
            revoke: None,
            auth: ClientAuth::Basic,
            names_itself: false,
        };
        let tokens = Tokens { access: key.clone(), refresh: None, until: None, scope: None, identity: None };
        Self::new(policy, &endpoints, tokens, now)
    }

    /// With this mark.
    pub(super) fn marked(self, mark: Option<&str>) -> Self {
        let mut record = self;
        record.mark = mark.map(str::to_owned);
        record
    }

    pub(super) fn has_mark(&self, mark: &str) -> bool {
        self.mark.as_deref() == Some(mark)
    }

    /// The record of these bytes; `None` if they are malformed.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let record: Self = serde_json::from_slice(bytes).ok()?;
        record.is_sound().then_some(record)
    }

    fn is_sound(&self) -> bool {
        self.version == VERSION && self.value().is_some()
    }

    pub(super) fn bytes(&self) -> Option<Zeroizing<Vec<u8>>> {
        serde_json::to_vec(self).ok().map(Zeroizing::new)
    }

    /// Takes the tokens of a refresh. A server that does not rotate refresh tokens sends none
    /// (RFC 6749, section 6), and may leave out the scope where it is the same.
    pub(super) fn renew(&mut self, tokens: Tokens, now: SystemTime) {
        let Tokens { access, refresh, until, scope, identity: _ } = tokens;
        self.access_token = access.to_string();
        if let Some(refresh) = refresh {
            self.refresh_token = Some(refresh.to_string());
        }
        self.since = seconds(now);
        self.until = until.map(seconds);
        self.scope = scope.or_else(|| self.scope.take());
        self.ended = None;
    }

    /// No more tokens: the refresh token is of no use.
    pub(super) fn end(&mut self, reason: &str) {
        self.refresh_token = None;
        self.ended = Some(reason.to_owned());
    }

    /// True if it is a login at this server, for the same.
    pub(super) fn is_of(&self, policy: &LoginPolicy) -> bool {
        self.login == policy.canonical()
    }

    /// The access token.
    pub(super) fn value(&self) -> Option<SecretValue> {
        SecretValue::new(Zeroizing::new(self.access_token.clone())).ok()
    }

    pub(super) fn refreshes(&self) -> bool {
        self.refresh_token.is_some()
    }

    pub(super) fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    pub(super) fn revoke(&self) -> Option<&str> {
        self.revocation_endpoint.as_deref()
    }

    pub(super) fn auth(&self) -> ClientAuth {
        if self.client_auth == "post" { ClientAuth::Post } else { ClientAuth::Basic }
    }

    pub(super) fn until(&self) -> Option<SystemTime> {
        UNIX_EPOCH.checked_add(Duration::from_secs(self.until?))
    }

    /// The time from which on the access token is refreshed: this long before its end, and no
    /// earlier than in the middle of its life.
    pub(super) fn renew_at(&self, early: Duration) -> Option<SystemTime> {
        let life = Duration::from_secs(self.until?.saturating_sub(self.since));
        self.until()?.checked_sub(early.min(life / 2))
    }

    /// Scopes that were asked for, and that the server says it did not give.
    pub(super) fn scopes_missing(&self, asked: &[String]) -> Vec<String> {
        let Some(given) = &self.scope else { return Vec::new() };
        let has = |scope: &&String| given.split(' ').any(|given| given == scope.as_str());
        asked.iter().filter(|scope| !has(scope)).cloned().collect()
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Drop for Record {
    fn drop(&mut self) {
        use zeroize::Zeroize as _;
        self.access_token.zeroize();
        self.refresh_token.zeroize();
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A record of this login whose token was given so long ago, for so long.
    pub(in super::super) fn record(policy: &LoginPolicy, refresh: Option<&str>, ago: u64, life: u64) -> Record {
        let endpoints = Endpoints {
            issuer: policy.issuer().map(str::to_owned),
            authorize: None,
            token: "https://login.example.com/token".to_owned(),
            device: None,
            revoke: None,
            auth: ClientAuth::Basic,
            names_itself: false,
        };
        let since = SystemTime::now() - Duration::from_secs(ago);
        let tokens = Tokens {
            access: Zeroizing::new("first-access".to_owned()),
            refresh: refresh.map(|token| Zeroizing::new(token.to_owned())),
            until: since.checked_add(Duration::from_secs(life)),
            scope: Some("read".to_owned()),
            identity: None,
        };
        Record::new(policy, &endpoints, tokens, since)
    }

    #[test]
    fn a_token_is_refreshed_early_and_not_before_the_middle_of_its_life() {
        let policy = super::super::token::tests::policy_of("issuer = \"https://login.example.com\"");
        let minute = Duration::from_secs(60);
        let record_of = |life: u64| record(&policy, None, 0, life);
        let early = |life: u64| {
            let record = record_of(life);
            record.until().unwrap().duration_since(record.renew_at(minute).unwrap()).unwrap()
        };
        assert_eq!(early(3_600), minute);
        assert_eq!(early(60), minute / 2);
        assert_eq!(early(0), Duration::ZERO);
        assert_eq!(record_of(60).scopes_missing(&["read".to_owned(), "write".to_owned()]), ["write"]);
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_is_one() {
        let policy = super::super::token::tests::policy_of("issuer = \"https://login.example.com\"");
        let bytes = record(&policy, Some("r"), 0, 60).bytes().unwrap();
        let read = Record::parse(&bytes).unwrap();
        assert!(read.is_of(&policy));
        assert_eq!((read.access_token.as_str(), read.refresh_token.as_deref()), ("first-access", Some("r")));
        let other = super::super::token::tests::policy_of("issuer = \"https://login.example.com\"\nscopes = [\"x\"]");
        assert!(!read.is_of(&other));
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        for wrong in [
            "",
            "{}",
            "null",
            &text.replace("\"version\":1", "\"version\":2"),
            &text.replace("first-access", "a\\nb"),
            &text.replace("\"since\"", "\"else\":1,\"since\""),
            &text[..text.len() - 1],
        ] {
            assert!(Record::parse(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
