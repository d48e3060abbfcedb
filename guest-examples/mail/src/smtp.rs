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
