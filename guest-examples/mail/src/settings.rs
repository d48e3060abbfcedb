//! The manifest's settings, as variables. Holds no defaults that reach anybody: without `ALLOWED_RECIPIENTS` nobody is
//! written to.

use toolkit::Failure;

use crate::address::{Address, Allowed, is_domain};

/// The way in which a connection gets its TLS. There is no way to go without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Security {
    /// The connection begins in plain text and changes over (RFC 3207): port 587.
    StartTls,
    /// TLS from the first byte (RFC 8314): port 465.
    Implicit,
}

/// Who a message is from.
#[derive(Debug)]
pub struct From {
    /// A name for people; may be empty.
    pub name: String,
    pub address: Address,
}

pub struct Login {
    pub user: String,
    pub password: String,
}

pub struct Settings {
    pub host: String,
    pub port: u16,
    pub security: Security,
    /// Certificates to trust in place of the usual ones: a file of the guest's tree, in PEM.
    pub ca_file: Option<String>,
    pub login: Option<Login>,
    pub from: From,
    pub allowed: Allowed,
}

impl Settings {
    /// Reads the settings out of these variables.
    ///
    /// # Errors
    /// [`Failure::Failed`] naming the variable.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let needed = |name: &str| variable(name).ok_or_else(|| missing(name));
        let host = needed("SMTP_HOST")?;
        if !is_domain(&host) {
            return Err(wrong("SMTP_HOST", "is not a host name"));
        }
        let security = match variable("SMTP_TLS").as_deref() {
            None | Some("starttls") => Security::StartTls,
            Some("implicit") => Security::Implicit,
            Some(_) => return Err(wrong("SMTP_TLS", "is neither \"starttls\" nor \"implicit\"")),
        };
        let port = match variable("SMTP_PORT") {
            Some(port) => port.parse().map_err(|_| wrong("SMTP_PORT", "is not a port"))?,
            None if security == Security::Implicit => 465,
            None => 587,
        };
        let login = match (variable("SMTP_USER"), variable("SMTP_PASSWORD")) {
            (Some(user), Some(password)) => Some(Login { user, password }),
            (None, None) => None,
            (Some(_), None) => return Err(missing("SMTP_PASSWORD")),
            (None, Some(_)) => return Err(missing("SMTP_USER")),
        };
        let from = From::parse(&needed("MAIL_FROM")?)?;
        let allowed = Allowed::parse(&variable("ALLOWED_RECIPIENTS").unwrap_or_default())?;
        Ok(Self { host, port, security, ca_file: variable("CA_FILE"), login, from, allowed })
    }
}

impl From {
    /// `someone@example.com`, or `Some Name <someone@example.com>`.
    fn parse(text: &str) -> Result<Self, Failure> {
        let (name, address) = match text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
            Some((name, address)) => (name.trim(), address),
            None => ("", text),
        };
        let address = Address::parse(address).map_err(|_| wrong("MAIL_FROM", "is not an address"))?;
        if name.chars().any(char::is_control) {
            return Err(wrong("MAIL_FROM", "has a name with control characters"));
        }
        Ok(Self { name: name.to_owned(), address })
    }
}

fn missing(name: &str) -> Failure {
    Failure::Failed(format!("the manifest does not set {name}, which this tool needs"))
}

fn wrong(name: &str, how: &str) -> Failure {
    Failure::Failed(format!("the manifest's {name} {how}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(set: &[(&str, &str)]) -> Result<Settings, Failure> {
        let usual = [("SMTP_HOST", "mail.example"), ("MAIL_FROM", "Ä Tool <tool@example.com>")];
        Settings::read(|name| {
            let found = set.iter().chain(&usual).find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn ports_follow_from_how_tls_begins() {
        for (set, port, security) in [
            (&[][..], 587, Security::StartTls),
            (&[("SMTP_TLS", "implicit")], 465, Security::Implicit),
            (&[("SMTP_PORT", "2525")], 2525, Security::StartTls),
        ] {
            let settings = read(set).unwrap();
            assert_eq!((settings.port, settings.security), (port, security));
        }
        assert_eq!(read(&[]).unwrap().from.name, "Ä Tool");
    }

    #[test]
    fn what_is_wrong_or_missing_is_named_and_its_value_is_not_shown() {
        for (set, said) in [
            (("SMTP_TLS", "none"), "the manifest's SMTP_TLS is neither \"starttls\" nor \"implicit\""),
            (("SMTP_PORT", "99999"), "the manifest's SMTP_PORT is not a port"),
            (("SMTP_HOST", "a b"), "the manifest's SMTP_HOST is not a host name"),
            (("SMTP_USER", "me"), "the manifest does not set SMTP_PASSWORD, which this tool needs"),
            (("SMTP_PASSWORD", "hunter2"), "the manifest does not set SMTP_USER, which this tool needs"),
            (("MAIL_FROM", ""), "the manifest does not set MAIL_FROM, which this tool needs"),
            (("MAIL_FROM", "x\r\nBcc: y <a@b>"), "the manifest's MAIL_FROM has a name with control characters"),
        ] {
            assert_eq!(read(&[set]).err().unwrap().message(), said);
        }
    }
}
