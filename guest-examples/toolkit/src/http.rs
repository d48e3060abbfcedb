//! Asking a server by `wasi:http`: one request, and its answer read up to a bound. The host decides by the manifest's
//! rules, adds secrets and `Host`, and speaks TLS. Holds nothing of what is asked.

#[cfg(target_arch = "wasm32")]
mod request;

use std::time::Duration;

use crate::Failure;

/// Where a request goes.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// `http` or `https`.
    pub scheme: &'a str,
    /// The host, and a port where it is not the scheme's own.
    pub authority: &'a str,
    /// The path with its query.
    pub path: &'a str,
}

impl<'a> Target<'a> {
    /// The parts of a URL. A path that is missing is `/`; a fragment is left out.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] where it is no `http` or `https` URL.
    pub fn of(url: &'a str) -> Result<Self, Failure> {
        let no_url = || Failure::invalid(format!("{url:?} is not an http or https URL"));
        let (scheme, rest) = url.split_once("://").ok_or_else(no_url)?;
        let rest = rest.split('#').next().unwrap_or("");
        let (authority, path) = rest.find('/').and_then(|at| rest.split_at_checked(at)).unwrap_or((rest, "/"));
        let is_one = ["http", "https"].contains(&scheme) && !authority.is_empty() && !authority.contains('?');
        if is_one { Ok(Self { scheme, authority, path }) } else { Err(no_url()) }
    }
}

/// The beginning of an answer: its status and fields. Its body comes with [`Answer::read`], or block by block with
/// [`Answer::blocks`].
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    fields: Vec<(String, String)>,
    #[cfg(target_arch = "wasm32")]
    body: request::Body,
}

impl Answer {
    /// The first value of a field, whose name is in lower case.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// Reads the body, or its first `bytes_max` bytes.
    ///
    /// # Errors
    /// [`Failure::Failed`] where it breaks off, or the host stops it at a limit.
    pub fn read(self, bytes_max: usize) -> Result<Vec<u8>, Failure> {
        #[cfg(target_arch = "wasm32")]
        return self.body.read(bytes_max);
        // No answer comes outside of a component.
        #[cfg(not(target_arch = "wasm32"))]
        Err(Failure::Failed(format!("there is no body of up to {bytes_max} bytes")))
    }
}

/// A body while it comes. Where it is dropped before its end, the host closes the connection.
#[derive(Debug)]
pub struct Blocks {
    #[cfg(target_arch = "wasm32")]
    blocks: request::Blocks,
}

impl Answer {
    /// Reads the body as it comes.
    ///
    /// # Errors
    /// [`Failure::Failed`] where there is none.
    pub fn blocks(self) -> Result<Blocks, Failure> {
        #[cfg(target_arch = "wasm32")]
        return Ok(Blocks { blocks: self.body.blocks()? });
        #[cfg(not(target_arch = "wasm32"))]
        Err(Failure::Failed("there is no body".to_owned()))
    }
}

impl Blocks {
    /// Waits for the next bytes; `None` at the end.
    ///
    /// # Errors
    /// As [`Answer::read`].
    pub fn block(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        #[cfg(target_arch = "wasm32")]
        return self.blocks.block();
        #[cfg(not(target_arch = "wasm32"))]
        Ok(None)
    }

    /// Reads on to the end without keeping anything, so that the host uses the connection for the next request.
    /// Gives up after this time, and where much comes.
    pub fn drain(self, time: Duration) {
        #[cfg(target_arch = "wasm32")]
        self.blocks.drain(time);
        #[cfg(not(target_arch = "wasm32"))]
        let _ = time;
    }
}

/// Asks with `GET` and these fields.
///
/// # Errors
/// [`Failure::Failed`] with what the host says: a denial names the line of the manifest that would allow it. Outside
/// a component there is no host to ask.
pub fn get(target: Target<'_>, fields: &[(&str, &str)]) -> Result<Answer, Failure> {
    send("GET", target, fields, None)
}

/// Asks with this method, these fields and this body.
///
/// # Errors
/// As [`get`].
pub fn send(method: &str, target: Target<'_>, fields: &[(&str, &str)], body: Option<&[u8]>) -> Result<Answer, Failure> {
    asked(method, target, fields, body, None)
}

/// Asks without a body, and gives up where the answer does not begin within this time.
///
/// # Errors
/// As [`get`].
pub fn send_within(
    time: Duration,
    method: &str,
    target: Target<'_>,
    fields: &[(&str, &str)],
) -> Result<Answer, Failure> {
    asked(method, target, fields, None, Some(time))
}

fn asked(
    method: &str,
    target: Target<'_>,
    fields: &[(&str, &str)],
    body: Option<&[u8]>,
    time: Option<Duration>,
) -> Result<Answer, Failure> {
    #[cfg(target_arch = "wasm32")]
    return request::send(method, target, fields, body, time);
    #[cfg(not(target_arch = "wasm32"))]
    {
        let _ = (method, target, fields, body, time);
        Err(Failure::Failed("there is no host to ask".to_owned()))
    }
}

/// Text for the value of a query: all but letters, digits and `-._~` as `%XX`.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_url_has_three_parts_or_is_none() {
        for (url, parts) in [
            ("https://a.example/x?y=z#part", Some(("https", "a.example", "/x?y=z"))),
            ("http://127.0.0.1:8080", Some(("http", "127.0.0.1:8080", "/"))),
            ("https:///x", None),
            ("https://a.example?x", None),
            ("ftp://a.example/", None),
            ("a.example", None),
        ] {
            let found = Target::of(url).ok().map(|target| (target.scheme, target.authority, target.path));
            assert_eq!(found, parts, "{url}");
        }
    }

    #[test]
    fn nothing_in_a_value_ends_it() {
        assert_eq!(escaped("São Tomé & co=1#+/?~"), "S%C3%A3o%20Tom%C3%A9%20%26%20co%3D1%23%2B%2F%3F~");
    }
}
