//! The listener that the browser returns to: one address of the loopback, for one login, for a
//! while.
//!
//! Any page that the browser shows can send requests to this port. They are answered with a fixed
//! text and change nothing: only one that knows the state ends the login.
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use toolcell_policy::LoopbackRedirect;
use url::form_urlencoded;
use zeroize::Zeroizing;

use super::error::LoginError;
use crate::listening::places::{ConnectionPlaces, PlaceBounds};
use crate::listening::small::{Visit, serve_all};

/// Time for a person to agree: to find a password and a second factor.
const AGREED_WITHIN: Duration = Duration::from_secs(10 * 60);

/// Time for a browser to send a request. It opens connections ahead of need, and leaves them.
const REQUEST_WITHIN: Duration = Duration::from_secs(10);

/// Bytes of a request's head: as many as servers take.
const HEAD_BYTES_MAX: usize = 32 << 10;

/// Connections at once: a browser has six.
const PLACES: PlaceBounds = PlaceBounds { strangers: 16, kept: 16 };

const DONE: &str = "You can close this window. The terminal says how it went on.";
const NOTHING: &str = "There is nothing here.";

/// The fields that the browser has to bring.
#[derive(Clone)]
pub(super) struct Expected {
    pub(super) state: Zeroizing<String>,
    /// The server's name.
    pub(super) issuer: Option<String>,
    /// True if the redirect must name the server (RFC 9207).
    pub(super) must_name: bool,
}

/// Listens on the loopback.
pub(super) struct Listener {
    listener: TcpListener,
    judge: Judge,
}

/// The meaning of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RedirectCame {
    /// It is not the one that is waited for.
    Other(u16),
    /// The server's code.
    Code(Zeroizing<String>),
    /// The server says no, or is not the one that was asked.
    Failed(String),
}

impl Listener {
    pub(super) async fn bind(redirect: &LoopbackRedirect, expected: Expected) -> Result<Self, LoginError> {
        let host = redirect.host();
        let address = if host == "localhost" { "127.0.0.1" } else { host };
        let listener = TcpListener::bind(format!("{address}:{}", redirect.port().unwrap_or(0))).await;
        let bound = listener.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
        let (port, listener) = bound.map_err(|error| {
            LoginError::Redirect(format!("the browser cannot return to {host}: {}", crate::files::file::plain(&error)))
        })?;
        let authority = format!("{host}:{port}");
        Ok(Self { listener, judge: Judge { authority, path: redirect.path().to_owned(), expected } })
    }

    /// The address, as the server gets it.
    pub(super) fn address(&self) -> String {
        format!("http://{}{}", self.judge.authority, self.judge.path)
    }

    /// The code that the browser brings. The listener is gone afterwards.
    pub(super) async fn code(self) -> Result<Zeroizing<String>, LoginError> {
        timeout(AGREED_WITHIN, self.wait()).await.map_err(|_| LoginError::Late(AGREED_WITHIN))?
    }

    async fn wait(self) -> Result<Zeroizing<String>, LoginError> {
        let Self { listener, judge } = self;
        let judge = Arc::new(judge);
        let converse = |visit| {
            let judge = Arc::clone(&judge);
            async move { timeout(REQUEST_WITHIN, judge.serve(visit)).await.ok().flatten() }
        };
        serve_all(listener, &ConnectionPlaces::new(PLACES), converse).await
    }
}

/// Judges one connection.
struct Judge {
    authority: String,
    path: String,
    expected: Expected,
}

impl Judge {
    /// Answers a request. `None` if it does not end the login.
    async fn serve(&self, visit: Visit) -> Option<Result<Zeroizing<String>, LoginError>> {
        let Visit { mut stream, place, .. } = visit;
        let head = read_head(&mut stream).await?;
        place.keep();
        let came = self.came(&head);
        let (status, text) = match &came {
            RedirectCame::Other(status) => (*status, NOTHING),
            RedirectCame::Code(_) | RedirectCame::Failed(_) => (200, DONE),
        };
        let page = format!("<!doctype html><meta charset=\"utf-8\"><title>toolcell</title><p>{text}</p>\n");
        let answer = format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\n\
             Cache-Control: no-store\r\nContent-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\
             Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n{page}",
            if status == 200 { "OK" } else { "Refused" },
            page.len()
        );
        // A browser that does not read its answer has brought the code all the same.
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
        match came {
            RedirectCame::Code(code) => Some(Ok(code)),
            RedirectCame::Failed(problem) => Some(Err(LoginError::Redirect(problem))),
            RedirectCame::Other(_) => None,
        }
    }

    fn came(&self, head: &[u8]) -> RedirectCame {
        let Some((target, host)) = parse(head) else { return RedirectCame::Other(400) };
        // Another name for this address is a page's that had it looked up anew.
        if !host.eq_ignore_ascii_case(&self.authority) {
            return RedirectCame::Other(400);
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path != self.path {
            return RedirectCame::Other(404);
        }
        self.expected.judge(query)
    }
}

impl Expected {
    /// The meaning of a redirect with this query.
    pub(super) fn judge(&self, query: &str) -> RedirectCame {
        let pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        let one = |name: &str| {
            let mut named = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_ref());
            named.next().filter(|_| named.next().is_none())
        };
        if !one("state").is_some_and(|state| is_same(state, &self.state)) {
            return RedirectCame::Other(400);
        }
        let named = pairs.iter().any(|(key, _)| key == "iss");
        if let (true, Some(issuer)) = (named || self.must_name, &self.issuer)
            && one("iss") != Some(issuer)
        {
            return RedirectCame::Failed("the browser came back from another authorization server".to_owned());
        }
        if let Some(error) = one("error") {
            return RedirectCame::Failed(
                LoginError::refused("the server", error, one("error_description"), &[]).to_string(),
            );
        }
        match one("code").filter(|code| !code.is_empty()) {
            Some(code) => RedirectCame::Code(Zeroizing::new(code.to_owned())),
            None => RedirectCame::Failed("the browser came back without a code".to_owned()),
        }
    }
}

/// The target and the host of a `GET`.
fn parse(head: &[u8]) -> Option<(&str, &str)> {
    let mut lines = std::str::from_utf8(head).ok()?.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let method = words.next()?;
    let target = words.next()?;
    let version = words.next()?;
    let fields = || lines.clone().filter_map(|line| line.split_once(':'));
    let mut hosts = fields().filter(|(name, _)| name.eq_ignore_ascii_case("host")).map(|(_, value)| value.trim());
    let host = hosts.next()?;
    let whole = words.next().is_none() && hosts.next().is_none();
    (method == "GET" && version.starts_with("HTTP/1.") && whole).then_some((target, host))
}

/// The head of a request, without its empty line.
async fn read_head(stream: &mut TcpStream) -> Option<Zeroizing<Vec<u8>>> {
    let mut head = Zeroizing::new(Vec::with_capacity(HEAD_BYTES_MAX));
    while head.len() < HEAD_BYTES_MAX {
        let left = (HEAD_BYTES_MAX - head.len()) as u64;
        // The end may have begun in the piece before.
        let from = head.len().saturating_sub(3);
        if (&mut *stream).take(left).read_buf(&mut *head).await.ok()? == 0 {
            return None;
        }
        let new = head.get(from..).unwrap_or_default();
        if let Some(end) = new.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            head.truncate(from + end);
            return Some(head);
        }
    }
    None
}

/// Compares without telling by its time how much is right.
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).fold(0, |all, (one, other)| all | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const ISSUER: &str = "https://a.example";

    fn judge(must_name: bool) -> Judge {
        let state = Zeroizing::new("right".to_owned());
        Judge {
            authority: "127.0.0.1:9".to_owned(),
            path: "/callback".to_owned(),
            expected: Expected { state, issuer: Some(ISSUER.to_owned()), must_name },
        }
    }

    fn came(must_name: bool, line: &str, host: &str) -> RedirectCame {
        judge(must_name).came(format!("{line} HTTP/1.1\r\nHost: {host}\r\nAccept: */*").as_bytes())
    }

    #[test]
    fn only_the_state_of_this_login_ends_it() {
        let host = "127.0.0.1:9";
        for (line, status) in [
            ("GET /callback?code=c", 400),
            ("GET /callback?code=c&state=wrong", 400),
            ("GET /callback?code=c&state=righ", 400),
            ("GET /callback?code=c&state=right&state=right", 400),
            ("GET /callback/?code=c&state=right", 404),
            ("GET /other?code=c&state=right", 404),
            ("GET http://127.0.0.1:9/callback?code=c&state=right", 404),
            ("GET /favicon.ico", 404),
            ("POST /callback?code=c&state=right", 400),
            ("GET", 400),
            ("", 400),
        ] {
            assert_eq!(came(false, line, host), RedirectCame::Other(status), "{line}");
        }
        for host in ["localhost:9", "127.0.0.1", "127.0.0.1:90", "rebound.example:9", ""] {
            assert_eq!(came(false, "GET /callback?code=c&state=right", host), RedirectCame::Other(400), "{host}");
        }
        let twice = "GET /callback?code=c&state=right HTTP/1.1\r\nHost: 127.0.0.1:9\r\nHost: 127.0.0.1:9";
        assert_eq!(judge(false).came(twice.as_bytes()), RedirectCame::Other(400));
        let code = RedirectCame::Code(Zeroizing::new("c d".to_owned()));
        assert_eq!(came(false, "GET /callback?code=c+d&state=right", host), code);
    }

    #[test]
    fn a_redirect_of_another_server_or_with_an_error_fails_the_login() {
        let failed = |must_name: bool, query: &str| match came(
            must_name,
            &format!("GET /callback?state=right&{query}"),
            "127.0.0.1:9",
        ) {
            RedirectCame::Failed(problem) => problem,
            other => panic!("{query}: {other:?}"),
        };
        let other = "the browser came back from another authorization server";
        assert_eq!(failed(false, "code=c&iss=https://b.example"), other);
        assert_eq!(failed(true, "code=c"), other);
        assert_eq!(failed(true, "code=c&iss=https://a.example&iss=https://a.example"), other);
        assert_eq!(failed(true, "error=access_denied&iss=https://b.example"), other);
        assert_eq!(
            failed(false, "error=access_denied&error_description=no%1b"),
            "the server refuses: access_denied: no"
        );
        assert_eq!(failed(false, "code="), "the browser came back without a code");
        let line = "GET /callback?state=right&code=c&iss=https%3A%2F%2Fa.example";
        assert_eq!(came(true, line, "127.0.0.1:9"), RedirectCame::Code(Zeroizing::new("c".to_owned())));
    }
}
