//! Lines out, replies in, each bounded. Holds no order of commands.

use std::io::{self, Read, Write};

use toolkit::Failure;

/// The longest line of a reply, in bytes. RFC 5321 has 512; some servers say more.
const LINE_MAX: usize = 4096;

/// The most lines of one reply. Servers offer some twenty things.
const LINES_MAX: usize = 100;

/// The most of a server's words that is repeated, in characters.
const SAID_CHARACTERS_MAX: usize = 300;

/// The name that the client gives itself: a tool in a sandbox has none of its own (RFC 5321, 4.1.3).
const HELLO: &str = "EHLO [127.0.0.1]";

/// A connection in plain text or TLS.
pub trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

/// A reply: its code and its lines.
pub struct Reply {
    code: u16,
    lines: Vec<String>,
}

pub struct Dialogue<W> {
    wire: W,
    /// Bytes that came and were not read yet.
    held: Vec<u8>,
}

impl<W: Wire> Dialogue<W> {
    pub fn new(wire: W) -> Self {
        Self { wire, held: Vec::new() }
    }

    /// The server's first words.
    pub fn greeting(&mut self) -> Result<(), Failure> {
        self.reply()?.expect(&[220], "the connection").map(drop)
    }

    /// Says hello, and gives what the server offers, in capitals.
    pub fn hello(&mut self) -> Result<Vec<String>, Failure> {
        self.send(&format!("{HELLO}\r\n"))?;
        let reply = self.reply()?;
        let offers = reply.lines.iter().skip(1).map(|line| line.trim().to_ascii_uppercase().replace("AUTH=", "AUTH "));
        let offers = offers.collect();
        reply.expect(&[250], "the connection")?;
        Ok(offers)
    }

    /// Sends a command and takes its reply. `what` is refused where the code is another one; the command itself is
    /// never repeated, since it may hold a password.
    pub fn ask(&mut self, command: &str, codes: &[u16], what: &str) -> Result<String, Failure> {
        if command.bytes().any(|byte| byte.is_ascii_control()) {
            return Err(Failure::Failed(format!("{what} has control characters in it")));
        }
        self.send(&format!("{command}\r\n"))?;
        self.reply()?.expect(codes, what)
    }

    /// Sends a message's text and its end. Dots at the beginnings of lines are doubled.
    pub fn send_text(&mut self, text: &str) -> Result<(), Failure> {
        let mut sent = String::with_capacity(text.len() + 16);
        for line in text.strip_suffix("\r\n").unwrap_or(text).split("\r\n") {
            if line.starts_with('.') {
                sent.push('.');
            }
            sent.push_str(line);
            sent.push_str("\r\n");
        }
        sent.push_str(".\r\n");
        self.send(&sent)
    }

    /// The connection itself, to change over to TLS. What the server said ahead in plain text is not taken along:
    /// somebody on the way could have written it.
    pub fn into_wire(self) -> Result<W, Failure> {
        if self.held.is_empty() {
            Ok(self.wire)
        } else {
            Err(Failure::Failed("the server said more in plain text after it was asked for TLS".to_owned()))
        }
    }

    fn send(&mut self, text: &str) -> Result<(), Failure> {
        self.wire.write_all(text.as_bytes()).and_then(|()| self.wire.flush()).map_err(|error| broken(&error))
    }

    /// The next reply.
    pub fn reply(&mut self) -> Result<Reply, Failure> {
        let no_smtp = || Failure::Failed("the server does not speak SMTP".to_owned());
        let mut lines = Vec::new();
        while lines.len() < LINES_MAX {
            let line = self.line()?;
            let (code, rest) = line.split_at_checked(3).ok_or_else(no_smtp)?;
            let code: u16 = code.parse().ok().filter(|code| (200..600).contains(code)).ok_or_else(no_smtp)?;
            let is_last = !rest.starts_with('-');
            lines.push(rest.get(1..).unwrap_or_default().to_owned());
            if is_last {
                return Ok(Reply { code, lines });
            }
        }
        Err(Failure::Failed(format!("the server's reply has more than {LINES_MAX} lines")))
    }

    fn line(&mut self) -> Result<String, Failure> {
        loop {
            if let Some(end) = self.held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.held.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.held.len() > LINE_MAX {
                return Err(Failure::Failed(format!("the server's reply has a line of more than {LINE_MAX} bytes")));
            }
            let mut block = [0; 1024];
            match self.wire.read(&mut block) {
                Ok(0) => return Err(broken(&io::ErrorKind::UnexpectedEof.into())),
                Ok(count) => self.held.extend(block.iter().take(count)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(broken(&error)),
            }
        }
    }
}

impl Reply {
    /// The server's words, where its code is one of these.
    pub fn expect(self, codes: &[u16], what: &str) -> Result<String, Failure> {
        let said: String =
            self.lines.join(" ").chars().filter(|letter| !letter.is_control()).take(SAID_CHARACTERS_MAX).collect();
        if codes.contains(&self.code) {
            return Ok(said);
        }
        let later = if self.code < 500 { ", for now" } else { "" };
        Err(Failure::Failed(format!("the server refused {what}{later}: {} {said}", self.code)))
    }
}

/// The outcome of a connection, in words.
fn broken(error: &io::Error) -> Failure {
    let how = match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            "the server ended the connection".to_owned()
        }
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "the server said nothing for too long".to_owned(),
        _ => format!("the connection to the server failed: {error}"),
    };
    Failure::Failed(how)
}

#[cfg(test)]
pub mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A server that has said everything before it is asked.
    pub struct Said {
        says: io::Cursor<Vec<u8>>,
        heard: Vec<u8>,
    }

    impl Read for Said {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.says.read(into)
        }
    }

    impl Write for Said {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.heard.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    pub fn with(says: &str) -> Dialogue<Said> {
        Dialogue::new(Said { says: io::Cursor::new(says.as_bytes().to_vec()), heard: Vec::new() })
    }

    /// All that was sent to the server.
    pub fn heard(dialogue: &Dialogue<Said>) -> String {
        String::from_utf8(dialogue.wire.heard.clone()).unwrap()
    }

    #[test]
    fn replies_of_several_lines_are_read() {
        let mut dialogue = with("250-mail.example\r\n250-starttls\r\n250 AUTH=PLAIN LOGIN\r\n");
        assert_eq!(dialogue.hello().unwrap(), ["STARTTLS", "AUTH PLAIN LOGIN"]);
        assert_eq!(dialogue.wire.heard, b"EHLO [127.0.0.1]\r\n");
    }

    #[test]
    fn a_refusal_is_said_with_the_servers_words() {
        for (says, said) in [
            ("550-5.1.1 no\r\n550 such user\x1b[31m\r\n", "the server refused it: 550 5.1.1 no such user[31m"),
            ("451 4.7.1 later\r\n", "the server refused it, for now: 451 4.7.1 later"),
            ("HTTP/1.1 400 Bad Request\r\n", "the server does not speak SMTP"),
            ("99\r\n", "the server does not speak SMTP"),
            ("é50 x\r\n", "the server does not speak SMTP"),
            ("250", "the server ended the connection"),
        ] {
            assert_eq!(with(says).ask("X", &[250], "it").unwrap_err().message(), said);
        }
    }

    #[test]
    fn what_has_no_end_is_given_up() {
        let failure = with(&"250-x\r\n".repeat(200)).reply().err().unwrap();
        assert_eq!(failure.message(), "the server's reply has more than 100 lines");
        let failure = with(&"2".repeat(10_000)).reply().err().unwrap();
        assert_eq!(failure.message(), "the server's reply has a line of more than 4096 bytes");
    }

    #[test]
    fn a_text_cannot_end_itself() {
        let mut dialogue = with("");
        dialogue.send_text("a\r\n.\r\n..b\r\nQUIT\r\n").unwrap();
        assert_eq!(dialogue.wire.heard, b"a\r\n..\r\n...b\r\nQUIT\r\n.\r\n");
    }

    #[test]
    fn a_command_is_one_line_and_plain_text_ahead_of_tls_is_refused() {
        assert!(with("250 ok\r\n").ask("RCPT TO:<a@b>\r\nDATA", &[250], "it").is_err());
        let mut dialogue = with("220 go\r\n250 injected\r\n");
        dialogue.ask("STARTTLS", &[220], "STARTTLS").unwrap();
        assert!(dialogue.into_wire().is_err());
    }
}
