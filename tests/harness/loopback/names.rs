//! A name server on UDP with scripted answers. A name may have one address the first time and
//! another the next.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

/// Query types, with the numbers of RFC 1035 and 3596.
const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;

/// The answer for a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// These addresses, or none if the list is empty.
    At(Vec<IpAddr>),
    /// Another name, and the present answer for that name.
    Alias(String),
    /// No such name.
    Missing,
    /// The server failed.
    Failing,
    /// No answer at all.
    Silent,
}

impl Named {
    /// These addresses.
    ///
    /// # Panics
    /// If one is not an address.
    #[must_use]
    pub fn at(addresses: &[&str]) -> Self {
        Self::At(addresses.iter().map(|address| address.parse().unwrap()).collect())
    }
}

/// A running name server. It ends with the test process.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(String, u16)>>>,
}

impl NameServer {
    /// A server for these names. The n-th query of a name and type gets the n-th answer; later
    /// queries get the last one. Every other name is missing.
    ///
    /// # Panics
    /// If it cannot listen.
    #[must_use]
    pub fn answering(script: &[(&str, &[Named])]) -> Self {
        let script: HashMap<String, Vec<Named>> =
            script.iter().map(|(name, answers)| ((*name).to_owned(), answers.to_vec())).collect();
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        std::thread::spawn(move || {
            let mut block = [0_u8; 4096];
            while let Ok((bytes, from)) = socket.recv_from(&mut block) {
                if let Some(reply) = reply(&block[..bytes], &script, &kept) {
                    let _ = socket.send_to(&reply, from);
                }
            }
        });
        Self { address, asked }
    }

    /// The address it listens on, for `dns` in a manifest.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The names asked for so far, in lower case, once for each type of address.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }

    /// The number of queries for the IPv4 addresses of this name.
    #[must_use]
    pub fn asked_for(&self, name: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|(asked, kind)| asked == name && *kind == A).count()
    }
}

/// The reply to one query. `None` if it is not a query, or gets no answer.
fn reply(query: &[u8], script: &HashMap<String, Vec<Named>>, asked: &Mutex<Vec<(String, u16)>>) -> Option<Vec<u8>> {
    let (name, end) = name_at(query, 12)?;
    let kind = u16::from_be_bytes(query.get(end..end + 2)?.try_into().ok()?);
    let mut asked = asked.lock().unwrap();
    let earlier = asked.iter().filter(|(other, of)| *other == name && *of == kind).count();
    asked.push((name.clone(), kind));
    let mut records = Vec::new();
    let mut code = 0;
    let mut owner = name.clone();
    loop {
        let answers = script.get(&owner);
        match answers.and_then(|answers| answers.get(earlier.min(answers.len().saturating_sub(1)))) {
            Some(Named::Silent) => return None,
            Some(Named::Failing) => code = 2,
            None | Some(Named::Missing) => code = 3,
            Some(Named::Alias(other)) => {
                records.push(record(&owner, CNAME, &encoded(other)));
                owner = other.clone();
                continue;
            }
            Some(Named::At(addresses)) => {
                records.extend(addresses.iter().filter_map(|address| match (address, kind) {
                    (IpAddr::V4(four), A) => Some(record(&owner, A, &four.octets())),
                    (IpAddr::V6(six), AAAA) => Some(record(&owner, AAAA, &six.octets())),
                    _ => None,
                }))
            }
        }
        break;
    }
    let count = u16::try_from(records.len()).ok()?.to_be_bytes();
    // Flags of an authoritative answer, with recursion as asked and available. Then one question,
    // the answers, and no other sections.
    let head = [query[0], query[1], 0x84 | (query[2] & 1), 0x80 | code, 0, 1, count[0], count[1], 0, 0, 0, 0];
    Some([&head[..], &query[12..end + 4], &records.concat()].concat())
}

/// The name at this offset in lower case, without its last dot, and the offset after it.
fn name_at(query: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*query.get(at)?);
        if length == 0 {
            return Some((labels.join("."), at + 1));
        }
        labels.push(String::from_utf8_lossy(query.get(at + 1..at + 1 + length)?).to_ascii_lowercase());
        at += 1 + length;
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let labels = name.split('.').flat_map(|label| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

/// One record that must not be cached: its time to live is 0.
fn record(owner: &str, kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap();
    [&encoded(owner)[..], &kind.to_be_bytes(), &1_u16.to_be_bytes(), &[0; 4], &length.to_be_bytes(), data].concat()
}
