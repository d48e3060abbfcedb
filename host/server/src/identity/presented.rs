//! Tokens that callers of issuers showed, for logins that work with them. Nothing is kept unless
//! there is one, and nothing leaves the process but for the issuer that gave the token, or for the
//! origin that such a login names.
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;
use toolcell_mcp::Caller;
use zeroize::Zeroizing;

/// Callers whose last token is kept: a thousand that are active at once. When there are more,
/// those whose token has ended go, or else all.
const KEPT_MAX: usize = 1_024;

/// The valid token that each caller showed last, by name and scopes: a token with other scopes is
/// another caller's here, so that no call gets more than its own token says.
#[derive(Default)]
pub struct PresentedTokens {
    is_needed: AtomicBool,
    kept: Mutex<HashMap<String, Presented>>,
}

/// A token that a caller showed.
#[derive(Clone)]
pub struct Presented {
    pub token: Zeroizing<String>,
    /// The name of its issuer, the claim `iss`.
    pub issuer: String,
    /// Its end.
    pub until: SystemTime,
}

fn name(caller: &Caller) -> String {
    caller.scopes().fold(caller.name().to_owned(), |name, scope| name + "\n" + scope)
}

impl PresentedTokens {
    /// From now on tokens are kept.
    pub fn need(&self) {
        self.is_needed.store(true, Ordering::Relaxed);
    }

    /// A caller showed this token.
    pub fn keep(&self, caller: &Caller, issuer: &str, token: &str, until: SystemTime) {
        if !self.is_needed.load(Ordering::Relaxed) {
            return;
        }
        let name = name(caller);
        let mut kept = self.kept.lock();
        // The token that was shown last counts, even if another lives longer: the issuer may have
        // revoked that one, and does not say so here.
        if kept.get(&name).is_some_and(|kept| kept.token.as_str() == token) {
            return;
        }
        if kept.len() >= KEPT_MAX && !kept.contains_key(&name) {
            let now = SystemTime::now();
            kept.retain(|_, kept| now < kept.until);
            if kept.len() >= KEPT_MAX {
                kept.clear();
            }
        }
        let token = Zeroizing::new(token.to_owned());
        kept.insert(name, Presented { token, issuer: issuer.to_owned(), until });
    }

    /// The token that the caller showed last, while it holds.
    pub fn of(&self, caller: &Caller) -> Option<Presented> {
        let kept = self.kept.lock();
        kept.get(&name(caller)).filter(|kept| SystemTime::now() < kept.until).cloned()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_caller_has_the_token_of_its_own_scopes_that_it_showed_last_and_only_while_it_holds() {
        let tokens = PresentedTokens::default();
        let ann = Caller::new("corp:ann", ["read"]);
        let later = |seconds: u64| SystemTime::now() + Duration::from_secs(seconds);
        tokens.keep(&ann, "https://a.example", "early", later(60));
        assert!(tokens.of(&ann).is_none(), "nobody needs it");
        tokens.need();
        tokens.keep(&ann, "https://a.example", "one", later(60));
        tokens.keep(&ann, "https://a.example", "two", later(90));
        tokens.keep(&ann, "https://a.example", "shorter", later(30));
        assert_eq!(*tokens.of(&ann).unwrap().token, "shorter");
        tokens.keep(&ann, "https://a.example", "two", later(90));
        assert_eq!(*tokens.of(&ann).unwrap().token, "two");
        assert!(tokens.of(&Caller::new("corp:ann", ["read", "write"])).is_none());
        assert!(tokens.of(&Caller::new("corp:bob", ["read"])).is_none());
        let bob = Caller::new("corp:bob", []);
        tokens.keep(&bob, "https://a.example", "ended", SystemTime::now());
        assert!(tokens.of(&bob).is_none());
        for number in 0..=KEPT_MAX {
            tokens.keep(&Caller::new(&format!("c{number}"), []), "https://a.example", "t", later(60));
        }
        assert!(tokens.kept.lock().len() <= KEPT_MAX);
    }
}
