//! `mail`: sends a message by SMTP submission (RFC 6409), with TLS in the component.
//! The lesson: a protocol over TCP. The host grants one address and port; the component speaks SMTP and TLS itself, so
//! it holds the password, which the host cannot add for it as it does with HTTP.
//!
//! Holds the tool's definition and the way to its answer; must hold no SMTP, no TLS and no message.

mod address;
mod date;
mod message;
mod random;
mod settings;
mod smtp;
mod tls;

use serde::{Deserialize, Serialize};
use toolkit::{CallResult, Failure, Guest, Hints, Tool};

use address::Address;
use message::Message;
use settings::Settings;

struct Mail;

toolkit::export!(Mail);

#[derive(Deserialize)]
struct Arguments {
    to: Vec<String>,
    subject: String,
    body: String,
}

#[derive(Serialize)]
struct Sent<'a> {
    message_id: &'a str,
    from: String,
    to: Vec<String>,
    server_said: String,
}

impl Guest for Mail {
    fn list_tools() -> Vec<Tool> {
        // A message cannot be called back: it is as destructive as a deletion, and a second call sends a second one.
        let hints =
            Hints { read_only: Some(false), destructive: Some(true), idempotent: Some(false), open_world: Some(true) };
        vec![Tool {
            hints: Some(hints),
            ..Tool::new(
                "send_email",
                "Sends a message as plain text, to recipients that the server's operator allowed. What was sent cannot be called back.",
                include_str!("../schemas/input.json"),
            )
            .title("Send mail")
            .output(include_str!("../schemas/output.json"))
        }]
    }

    fn call_tool(name: String, arguments_json: String) -> Result<CallResult, Failure> {
        match name.as_str() {
            "send_email" => send(&toolkit::arguments(&arguments_json)?),
            other => Err(Failure::unknown_tool(other)),
        }
    }
}

/// Everything that can be refused is refused before anything is connected to.
fn send(arguments: &Arguments) -> Result<CallResult, Failure> {
    let settings = Settings::read(|name| std::env::var(name).ok())?;
    let to = recipients(&arguments.to, &settings)?;
    let message = Message::new(&settings.from, &to, &arguments.subject, &arguments.body)?;
    let server_said = smtp::submit(&settings, &to, &message)?;
    CallResult::structured(&Sent {
        message_id: message.id(),
        from: settings.from.address.to_string(),
        to: to.iter().map(Address::to_string).collect(),
        server_said,
    })
}

fn recipients(named: &[String], settings: &Settings) -> Result<Vec<Address>, Failure> {
    let mut to = Vec::new();
    for text in named {
        let address = Address::parse(text)?;
        if !settings.allowed.allows(&address) {
            return Err(Failure::Failed(format!("nothing may be sent to {address}: {}", settings.allowed)));
        }
        to.push(address);
    }
    if to.is_empty() { Err(Failure::invalid("there is no recipient")) } else { Ok(to) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    fn settings(allowed: &str) -> Settings {
        Settings::read(|name| match name {
            "SMTP_HOST" => Some("mail.example".to_owned()),
            "MAIL_FROM" => Some("Tools <tools@example.com>".to_owned()),
            "ALLOWED_RECIPIENTS" => Some(allowed.to_owned()),
            _ => None,
        })
        .unwrap()
    }

    #[test]
    fn one_recipient_that_is_not_allowed_stops_the_message() {
        let named = ["a@example.com".to_owned(), "b@example.org".to_owned()];
        assert_eq!(recipients(&named[..1], &settings("*@example.com")).unwrap().len(), 1);
        let failure = recipients(&named, &settings("*@example.com")).unwrap_err();
        assert_eq!(
            failure.message(),
            "nothing may be sent to b@example.org: the manifest allows *@example.com (ALLOWED_RECIPIENTS)"
        );
        let failure = recipients(&named, &settings("")).unwrap_err();
        assert_eq!(
            failure.message(),
            "nothing may be sent to a@example.com: the manifest allows nobody (ALLOWED_RECIPIENTS)"
        );
    }
}
