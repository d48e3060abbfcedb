//! Pages without a view: signing in, and errors.

use maud::{Markup, html};

use crate::frame::bare;
use crate::model::{ErrorPage, SignIn, SignInReason};
use crate::routes;
use crate::text::{line, words};

/// Most characters of a token: as long as one of an issuer may be.
const TOKEN_CHARS: u32 = 16 * 1_024;

/// The id of the sentence that says why the page is shown.
const REASON: &str = "reason";

/// The page where a person signs in.
#[must_use]
pub fn sign_in(page: &SignIn) -> String {
    let content = html! {
        h1 { "Sign in" @if !page.server.is_empty() { " to " (line(&page.server)) } }
        (reason(page.reason))
        @if page.with_token { (token(page.reason)) }
        @if page.with_token {
            p.dim { "A link that " code { "toolcell console" } " prints on the server's machine enters as well." }
        } @else {
            p {
                "Open the link that " code { "toolcell serve --console" } " printed at its start; it works once. "
                code { "toolcell console" } " prints another."
            }
        }
    };
    bare(&format!("Sign in · {}", words(&page.server, 60)), &html! {}, &content)
}

/// A page that says why a view is missing.
#[must_use]
pub fn error(page: &ErrorPage) -> String {
    let content = html! {
        h1 { (title(page.status)) }
        p { (line(&page.text)) }
        @if let Some(hint) = &page.hint { p.dim { (line(hint)) } }
        p { a href=(routes::NOW) { "Back to the console" } }
        p.dim { "HTTP status " (page.status) }
    };
    bare(&format!("{} · toolcell", title(page.status)), &html! {}, &content)
}

/// A page that leads on to `path` within the console. A browser sends the session's cookie from
/// there, but not when another site's page leads here.
#[must_use]
pub fn going_on(path: &str) -> String {
    let refresh = html! { meta http-equiv="refresh" content=(format!("0;url={path}")); };
    let content = html! {
        h1 { "toolcell" }
        p { a href=(path) { "Go on to the console" } }
    };
    bare("toolcell", &refresh, &content)
}

/// The form for a token. It carries no token of a session, because there is none yet.
fn token(reason: SignInReason) -> Markup {
    let is_wrong = reason == SignInReason::WrongToken;
    html! {
        form method="post" action=(routes::SIGN_IN) {
            div.field {
                label for="token" { "Token" }
                input #token name=(routes::TOKEN) type="password" required maxlength=(TOKEN_CHARS)
                    autocomplete="current-password" spellcheck="false"
                    aria-invalid=[is_wrong.then_some("true")] aria-describedby=[is_wrong.then_some(REASON)];
            }
            button.main { "Sign in" }
        }
    }
}

fn reason(reason: SignInReason) -> Markup {
    let (class, text) = match reason {
        SignInReason::NotSignedIn => return html! {},
        SignInReason::LinkSpent => {
            ("notice failed", "This link is spent: it works once, and for a short time. A new one is needed.")
        }
        SignInReason::WrongToken => {
            ("notice failed", "This token does not open the console: it is wrong, has ended, or is not an operator's.")
        }
        SignInReason::SessionEnded => ("notice", "The session has ended. Sign in again."),
        SignInReason::SignedOut => ("notice", "You are signed out."),
        SignInReason::NotNow => {
            ("notice failed", "The token cannot be checked just now. Wait a minute, then try again.")
        }
        SignInReason::TooMany => ("notice failed", "Too many wrong tokens came. Wait a minute, then try again."),
    };
    html! { p #(REASON) class=(class) role="alert" { (text) } }
}

const fn title(status: u16) -> &'static str {
    match status {
        400 => "That request makes no sense",
        401 => "Nobody is signed in",
        403 => "That is not allowed",
        404 => "There is no such page",
        405 => "That cannot be done here",
        409 => "It has changed meanwhile",
        413 => "That is too large",
        429 => "Too many requests",
        503 => "The server is busy",
        _ => "Something went wrong",
    }
}
