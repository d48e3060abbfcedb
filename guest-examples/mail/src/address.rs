//! Addresses, and who may be written to. Only what every server takes: ASCII, no quotes, no comments. So no address
//! can hold what has a meaning in SMTP or in a header.

use std::fmt;

use toolkit::Failure;

/// Longest local part and domain, in bytes (RFC 5321, 4.5.3.1).
const LOCAL_MAX: usize = 64;
const DOMAIN_MAX: usize = 253;

/// An address, such as `someone@example.com`. Its domain is in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    local: String,
    domain: String,
}

/// Who may be written to.
#[derive(Debug)]
pub struct Allowed {
    rules: Vec<Rule>,
}

#[derive(Debug)]
enum Rule {
    One(Address),
    /// Everybody of a domain, which is in lower case.
    Domain(String),
}

impl Address {
    /// # Errors
    /// [`Failure::InvalidInput`], with what is wrong.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::invalid(format!("{text:?} is not an address that this tool accepts: {what}"));
        let (local, domain) = text.split_once('@').ok_or_else(|| wrong("there is no @"))?;
        if !is_dotted(local, LOCAL_MAX, is_local) {
            return Err(wrong("before the @ it takes letters, digits, single dots and !#$%&'*+-/=?^_`{|}~"));
        }
        if !is_domain(domain) {
            return Err(wrong("after the @ it takes a domain of letters, digits, hyphens and dots"));
        }
        Ok(Self { local: local.to_owned(), domain: domain.to_ascii_lowercase() })
    }

    /// The domain, in lower case.
    pub fn domain(&self) -> &str {
        &self.domain
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.local, self.domain)
    }
}

impl Allowed {
    /// Rules between commas or blanks: `someone@example.com`, or `*@example.com` for everybody of that domain, which
    /// is not its subdomains.
    ///
    /// # Errors
    /// [`Failure::Failed`] naming the rule that is invalid.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        let rules = text.split([',', ' ', '\n', '\t']).filter(|rule| !rule.is_empty()).map(Rule::parse);
        Ok(Self { rules: rules.collect::<Result<_, _>>()? })
    }

    pub fn allows(&self, address: &Address) -> bool {
        self.rules.iter().any(|rule| match rule {
            Rule::One(one) => one.domain == address.domain && one.local.eq_ignore_ascii_case(&address.local),
            Rule::Domain(domain) => *domain == address.domain,
        })
    }
}

impl Rule {
    fn parse(rule: &str) -> Result<Self, Failure> {
        let wrong =
            || Failure::Failed(format!("ALLOWED_RECIPIENTS: {rule:?} is neither an address nor *@ and a domain"));
        match rule.strip_prefix("*@") {
            Some(domain) if is_domain(domain) => Ok(Self::Domain(domain.to_ascii_lowercase())),
            Some(_) => Err(wrong()),
            // A star is a letter of addresses, and nobody means it as one here.
            None if rule.contains('*') => Err(wrong()),
            None => Address::parse(rule).map(Self::One).map_err(|_| wrong()),
        }
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<String> = self
            .rules
            .iter()
            .map(|rule| match rule {
                Rule::One(address) => address.to_string(),
                Rule::Domain(domain) => format!("*@{domain}"),
            })
            .collect();
        let who = if rules.is_empty() { "nobody".to_owned() } else { rules.join(", ") };
        write!(formatter, "the manifest allows {who} (ALLOWED_RECIPIENTS)")
    }
}

/// A name of a host or a domain: labels of letters, digits and inner hyphens.
pub fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| label.len() <= 63 && !label.starts_with('-') && !label.ends_with('-');
    is_dotted(text, DOMAIN_MAX, |byte| byte.is_ascii_alphanumeric() || byte == b'-') && text.split('.').all(is_label)
}

fn is_dotted(text: &str, bytes_max: usize, is_taken: impl Fn(u8) -> bool) -> bool {
    text.len() <= bytes_max && text.split('.').all(|part| !part.is_empty() && part.bytes().all(&is_taken))
}

/// The characters of an atom (RFC 5322, 3.2.3).
fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&byte)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_could_be_more_than_an_address_is_none() {
        for text in [
            "",
            "a",
            "a@",
            "@b",
            "a@b@c",
            "a b@c.example",
            "a@b c",
            "a@b.example\r\nRCPT TO:<x@y>",
            "a\n@b",
            "a@b\0",
            "<a@b>",
            "A <a@b>",
            "a@b>",
            "\"a\"@b",
            "a(x)@b",
            "a,b@c",
            "a;b@c",
            ".a@b",
            "a.@b",
            "a..b@c",
            "a@.b",
            "a@b.",
            "a@-b",
            "a@b-",
            "a@[127.0.0.1]",
            "ä@b",
            "a@bücher.example",
            "a:b@c",
        ] {
            assert!(Address::parse(text).is_err(), "{text:?}");
        }
        let long = format!("{}@b", "a".repeat(65));
        assert!(Address::parse(&long).is_err());
        for text in ["a@b", "first.last+tag@sub.example.com", "o'neil@x-y.example"] {
            assert_eq!(Address::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn only_those_that_a_rule_names_are_allowed() {
        let allowed = Allowed::parse("*@Example.com, boss@other.example").unwrap();
        for (address, is_allowed) in [
            ("a@example.com", true),
            ("a@EXAMPLE.COM", true),
            ("a@sub.example.com", false),
            ("a@notexample.com", false),
            ("a@example.com.evil.example", false),
            ("Boss@other.example", true),
            ("a@other.example", false),
        ] {
            assert_eq!(allowed.allows(&Address::parse(address).unwrap()), is_allowed, "{address}");
        }
        for rule in ["*", "*@", "*@*", "*@*.example.com", "a*@b.example", "@b"] {
            assert!(Allowed::parse(rule).is_err(), "{rule}");
        }
    }
}
