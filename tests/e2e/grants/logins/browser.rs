//! A browser as far as a login needs one: it follows redirects, keeps cookies, and fills in forms.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use toolcell_tests::patience;

/// The most redirects that are followed.
const REDIRECTS_MAX: usize = 20;

/// A browser with its cookies.
#[derive(Default)]
pub(super) struct Browser {
    /// By host and port, and name.
    cookies: BTreeMap<(String, String), String>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Page {
    /// Where it is from, after redirects.
    pub(super) url: String,
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: String,
}

impl Page {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    /// The value of a hidden field of its form.
    pub(super) fn hidden(&self, name: &str) -> &str {
        let after = self.body.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("{self:?}")).1;
        after.split('"').next().unwrap()
    }
}

impl Browser {
    /// Opens an address, and what it leads to.
    pub(super) fn open(&mut self, url: &str) -> Page {
        let page = self.get(url);
        self.follow(page)
    }

    /// Keeps a cookie for this host and port.
    pub(super) fn keep(&mut self, authority: &str, name: &str, value: &str) {
        self.cookies.insert((authority.to_owned(), name.to_owned()), value.to_owned());
    }

    /// The cookies for the host and port of this address.
    pub(super) fn cookies_of(&self, url: &str) -> Vec<(String, String)> {
        let authority = url.split('/').nth(2).unwrap();
        let own = self.cookies.iter().filter(|((of, _), _)| of == authority);
        own.map(|((_, name), value)| (name.clone(), value.clone())).collect()
    }

    /// Keeps cookies of another browser for the host and port of this address.
    pub(super) fn keep_all(&mut self, url: &str, cookies: &[(String, String)]) {
        let authority = url.split('/').nth(2).unwrap();
        cookies.iter().for_each(|(name, value)| self.keep(authority, name, value));
    }

    /// Sends a form of a page of the same origin, as a browser does. Follows nothing.
    pub(super) fn press(&mut self, url: &str, form: &str) -> Page {
        let origin: String = url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        self.ask_with("POST", url, form, &format!("Origin: {origin}\r\n"))
    }

    /// Sends a form, and opens what it leads to.
    pub(super) fn submit(&mut self, url: &str, form: &str) -> Page {
        let page = self.post(url, form);
        self.follow(page)
    }

    pub(super) fn follow(&mut self, mut page: Page) -> Page {
        for _ in 0..REDIRECTS_MAX {
            let Some(location) = page.field("location").filter(|_| (300..400).contains(&page.status)) else {
                return page;
            };
            let next = if location.starts_with('/') {
                let origin: String = page.url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
                format!("{origin}{location}")
            } else {
                location.to_owned()
            };
            page = self.get(&next);
        }
        panic!("too many redirects: {page:?}");
    }

    /// One request.
    pub(super) fn get(&mut self, url: &str) -> Page {
        self.ask("GET", url, "")
    }

    /// One request with a form.
    pub(super) fn post(&mut self, url: &str, form: &str) -> Page {
        self.ask("POST", url, form)
    }

    fn ask(&mut self, method: &str, url: &str, form: &str) -> Page {
        self.ask_with(method, url, form, "")
    }

    /// One request with these further fields, each with its line end.
    pub(super) fn ask_with(&mut self, method: &str, url: &str, form: &str, fields: &str) -> Page {
        let rest = url.strip_prefix("http://").unwrap_or_else(|| panic!("{url}"));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let own = self.cookies.iter().filter(|((of, _), _)| of == authority);
        let cookies: Vec<String> = own.map(|((_, name), value)| format!("{name}={value}")).collect();
        let mut stream = TcpStream::connect(authority).unwrap();
        stream.set_read_timeout(Some(patience())).unwrap();
        write!(
            stream,
            "{method} /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nAccept: text/html\r\n\
             {fields}Cookie: {}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
            cookies.join("; "),
            form.len()
        )
        .unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let page = parse(url, &String::from_utf8_lossy(&bytes));
        for (_, cookie) in page.fields.iter().filter(|(name, _)| name == "set-cookie") {
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.insert((authority.to_owned(), name.to_owned()), value.to_owned());
        }
        self.cookies.retain(|_, value| !value.is_empty());
        page
    }
}

fn parse(url: &str, text: &str) -> Page {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{url}: {text:?}"));
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let fields = lines.filter_map(|line| line.split_once(": "));
    let fields = fields.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
    Page { url: url.to_owned(), status, fields, body: body.to_owned() }
}
