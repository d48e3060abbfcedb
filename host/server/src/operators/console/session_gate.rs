//! Links into the console, its operators, and the cookie of a session.
use std::time::Instant;

use super::operators::Operators;
use super::session::{ConsoleSession, Sessions};

/// The path of links.
pub const ENTER: &str = "/enter/";

/// Issues links, and knows sessions.
pub struct SessionGate {
    pub(super) sessions: Sessions,
    /// Those who sign in with a token, if anybody may.
    pub(super) operators: Option<Operators>,
    url: String,
    pub(super) cookie: String,
    has_tls: bool,
}

impl SessionGate {
    /// `operators` may sign in as well.
    pub fn new(url: String, port: u16, has_tls: bool, operators: Option<Operators>) -> Self {
        // Browsers send cookies to every port of a host, so two consoles of one machine need
        // different names.
        let prefix = if has_tls { "__Host-" } else { "" };
        let cookie = format!("{prefix}toolcell_console_{port}");
        Self { sessions: Sessions::default(), operators, url, cookie, has_tls }
    }

    /// True if the session's person may still be here: anyone who came by a link, and operators.
    pub fn still_admits(&self, session: &ConsoleSession) -> bool {
        let is_operator = |name: &String| self.operators.as_ref().is_some_and(|operators| operators.has(name));
        session.operator.as_ref().is_none_or(is_operator)
    }

    /// True if anybody may sign in with a token.
    pub fn takes_tokens(&self) -> bool {
        self.operators.as_ref().is_some_and(Operators::are_there)
    }

    /// A new link, which works once. `Err` is one sentence.
    pub fn link(&self) -> Result<String, String> {
        Ok(format!("{}{ENTER}{}", self.url, self.sessions.link(Instant::now())?))
    }

    /// The header that sets or removes the cookie.
    pub fn set_cookie(&self, secret: Option<&str>) -> String {
        let secure = if self.has_tls { "; Secure" } else { "" };
        let ends = if secret.is_none() { "; Max-Age=0" } else { "" };
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict{secure}{ends}", self.cookie, secret.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_for_this_console_and_no_script() {
        let plain = SessionGate::new("http://127.0.0.1:9".to_owned(), 9, false, None);
        assert_eq!(plain.set_cookie(Some("x")), "toolcell_console_9=x; Path=/; HttpOnly; SameSite=Strict");
        let secure = SessionGate::new("https://a.example:9".to_owned(), 9, true, None);
        let expected = "__Host-toolcell_console_9=; Path=/; HttpOnly; SameSite=Strict; Secure; Max-Age=0";
        assert_eq!(secure.set_cookie(None), expected);
        assert!(plain.link().unwrap().starts_with("http://127.0.0.1:9/enter/"));
    }
}
