//! SMTP as far as submitting a message needs it (RFC 5321, 3207, 4954). Holds no message and no TLS.

mod dialogue;

use std::net::TcpStream;
use std::time::Duration;

use toolkit::Failure;

use crate::address::Address;
use crate::message::{Message, base64};
use crate::settings::{Login, Security, Settings};
use crate::tls;

use dialogue::{Dialogue, Wire};

/// The longest wait for a server's next bytes. The call's own deadline may be shorter.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// Sends a message, and gives the server's words when it took it. The server takes it for all recipients or for none.
pub fn submit(settings: &Settings, to: &[Address], message: &Message) -> Result<String, Failure> {
    let Settings { host, port, .. } = settings;
    let stream = TcpStream::connect((host.as_str(), *port))
        .map_err(|error| Failure::Failed(format!("{host}:{port} cannot be connected to: {error}")))?;
    // Where it is not there, the call's deadline remains.
    let _ = stream.set_read_timeout(Some(SILENCE_MAX));
    let mut dialogue = match settings.security {
        Security::Implicit => Dialogue::new(tls::over(stream, settings)?),
        Security::StartTls => Dialogue::new(tls::over(changed_over(stream)?, settings)?),
    };
    if settings.security == Security::Implicit {
        dialogue.greeting()?;
    }
    let offers = dialogue.hello()?;
    if let Some(login) = &settings.login {
        log_in(&mut dialogue, &offers, login)?;
    }
    let said = deliver(&mut dialogue, &settings.from.address, to, message)?;
    // The message is taken; an end that is not polite changes nothing.
    let _ = dialogue.ask("QUIT", &[221], "QUIT");
    Ok(said)
}

/// Begins in plain text and asks for TLS. Nothing that was said before it counts afterwards.
fn changed_over(stream: TcpStream) -> Result<TcpStream, Failure> {
    let mut dialogue = Dialogue::new(stream);
    dialogue.greeting()?;
    let offers = dialogue.hello()?;
    if !offers.iter().any(|offer| offer == "STARTTLS") {
        return Err(Failure::Failed(
            "the server offers no TLS here (STARTTLS), and nothing is sent without".to_owned(),
        ));
    }
    dialogue.ask("STARTTLS", &[220], "STARTTLS")?;
    dialogue.into_wire()
}

fn log_in<W: Wire>(dialogue: &mut Dialogue<W>, offers: &[String], login: &Login) -> Result<(), Failure> {
    let offered = offers.iter().find_map(|offer| offer.strip_prefix("AUTH ")).unwrap_or_default();
    let Login { user, password } = login;
    if offered.split(' ').any(|way| way == "PLAIN") {
        let both = base64(format!("\0{user}\0{password}").as_bytes());
        dialogue.ask(&format!("AUTH PLAIN {both}"), &[235], "the login")?;
    } else if offered.split(' ').any(|way| way == "LOGIN") {
        dialogue.ask("AUTH LOGIN", &[334], "the login")?;
        dialogue.ask(&base64(user.as_bytes()), &[334], "the login")?;
        dialogue.ask(&base64(password.as_bytes()), &[235], "the login")?;
    } else {
        return Err(Failure::Failed("the server offers no login by password (AUTH PLAIN or LOGIN)".to_owned()));
    }
    Ok(())
}

fn deliver<W: Wire>(
    dialogue: &mut Dialogue<W>,
    from: &Address,
    to: &[Address],
    message: &Message,
) -> Result<String, Failure> {
    dialogue.ask(&format!("MAIL FROM:<{from}>"), &[250], &format!("the sender {from}"))?;
    for address in to {
        dialogue.ask(&format!("RCPT TO:<{address}>"), &[250, 251], &format!("the recipient {address}"))?;
    }
    dialogue.ask("DATA", &[354], "the message")?;
    dialogue.send_text(message.text())?;
    let said = dialogue.reply().map_err(|failure| {
        Failure::Failed(format!("{}; the message may have been sent all the same", failure.message()))
    })?;
    said.expect(&[250], "the message")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::dialogue::tests::{heard, with};
    use super::*;
    use crate::settings::From;

    #[test]
    fn the_login_is_the_way_that_the_server_offers() {
        let login = Login { user: "me@a.example".to_owned(), password: "p\u{e4}ss word".to_owned() };
        for (offer, says, said) in [
            ("AUTH LOGIN PLAIN", "235 ok\r\n", "AUTH PLAIN AG1lQGEuZXhhbXBsZQBww6RzcyB3b3Jk\r\n"),
            (
                "AUTH LOGIN",
                "334 VXNlcm5hbWU6\r\n334 UGFzc3dvcmQ6\r\n235 ok\r\n",
                "AUTH LOGIN\r\nbWVAYS5leGFtcGxl\r\ncMOkc3Mgd29yZA==\r\n",
            ),
        ] {
            let mut dialogue = with(says);
            log_in(&mut dialogue, &["SIZE 1000".to_owned(), offer.to_owned()], &login).unwrap();
            assert_eq!(heard(&dialogue), said);
        }
        let failure = log_in(&mut with(""), &["AUTH XOAUTH2".to_owned()], &login).unwrap_err();
        assert_eq!(failure.message(), "the server offers no login by password (AUTH PLAIN or LOGIN)");
        let failure = log_in(&mut with("535 5.7.8 no\r\n"), &["AUTH PLAIN".to_owned()], &login).unwrap_err();
        assert_eq!(failure.message(), "the server refused the login: 535 5.7.8 no");
    }

    #[test]
    fn a_message_whose_fate_is_not_known_is_said_to_be_so() {
        let address = Address::parse("a@example.com").unwrap();
        let from = From { name: String::new(), address: address.clone() };
        let message = Message::new(&from, std::slice::from_ref(&address), "Tea", "x").unwrap();
        let until_data = "250 ok\r\n250 ok\r\n354 go\r\n";
        for (says, said) in [
            (until_data.to_owned(), "the server ended the connection; the message may have been sent all the same"),
            (format!("{until_data}554 spam\r\n"), "the server refused the message: 554 spam"),
            ("250 ok\r\n450 busy\r\n".to_owned(), "the server refused the recipient a@example.com, for now: 450 busy"),
            ("553 no\r\n".to_owned(), "the server refused the sender a@example.com: 553 no"),
        ] {
            let failure = deliver(&mut with(&says), &address, std::slice::from_ref(&address), &message).unwrap_err();
            assert_eq!(failure.message(), said);
        }
        let mut dialogue = with(&format!("{until_data}250 2.0.0 queued\r\n"));
        assert_eq!(deliver(&mut dialogue, &address, std::slice::from_ref(&address), &message).unwrap(), "2.0.0 queued");
        let begin = "MAIL FROM:<a@example.com>\r\nRCPT TO:<a@example.com>\r\nDATA\r\nDate: ";
        assert!(heard(&dialogue).starts_with(begin) && heard(&dialogue).ends_with("\r\nx\r\n.\r\n"));
    }
}
