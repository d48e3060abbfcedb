//! Problems of the certificates that a manifest names, now and soon.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use toolcell_audit::timestamp;
use toolcell_mcp::http::Certificate;
use toolcell_policy::{ConsolePolicy, Diagnostic, HttpPolicy, Manifest, TlsFiles};
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::certificate::{PEM_BYTES_MAX, read};

/// Time before the end of a certificate from which on its end is a problem: renewals are tried
/// twice a day for a month, and a person needs some days.
const ENDS_SOON: Duration = Duration::from_secs(14 * 24 * 3_600);

/// A certificate's own times and names.
struct CertificateFacts {
    begins: SystemTime,
    ends: SystemTime,
    names: Vec<String>,
    addresses: Vec<IpAddr>,
}

/// The certificates that this process shows, by their files, with the times of their ends.
static SHOWN: Mutex<BTreeMap<String, SystemTime>> = Mutex::new(BTreeMap::new());

/// Notes the certificate that a listener shows from now on. One that cannot be read has no end that
/// anybody could know.
pub(super) fn note_shown(file: &Path, chain_pem: &[u8]) {
    let mut shown = SHOWN.lock();
    let name = file.display().to_string();
    match CertificateFacts::of(chain_pem) {
        Ok(facts) => drop(shown.insert(name, facts.ends)),
        Err(_) => drop(shown.remove(&name)),
    }
}

/// The certificates that this process shows, by their files, with the times of their ends.
pub fn shown_certificates() -> Vec<(String, SystemTime)> {
    let shown = SHOWN.lock();
    shown.iter().map(|(file, ends)| (file.clone(), *ends)).collect()
}

/// A sentence for each of them that has ended, or ends soon.
pub fn ending_certificates(now: SystemTime) -> Vec<String> {
    let ending = shown_certificates().into_iter().filter(|(_, ends)| *ends <= now + ENDS_SOON);
    let told = ending.map(|(file, ends)| match ends <= now {
        true => format!("the certificate in {file} ended on {}: clients refuse it", day(ends)),
        false => format!("the certificate in {file} ends on {}", day(ends)),
    });
    told.collect()
}

/// A listener with TLS.
struct HeldListener<'m> {
    section: &'static str,
    files: TlsFiles<'m>,
    /// The names it goes by.
    hosts: &'m [String],
}

/// Problems of the certificates of all listeners, now.
pub fn check_certificates(manifest: &Manifest, folder: &Path) -> Vec<Diagnostic> {
    let http = manifest.http().and_then(|http| Some((http, HttpPolicy::tls(http)?)));
    let http = http.map(|(http, files)| HeldListener { section: "[http]", files, hosts: http.hosts() });
    let console = manifest.console().and_then(|console| Some((console, ConsolePolicy::tls(console)?)));
    let console = console.map(|(console, files)| HeldListener { section: "[console]", files, hosts: console.hosts() });
    http.into_iter().chain(console).flat_map(|listener| listener.check(folder, SystemTime::now())).collect()
}

impl HeldListener<'_> {
    fn check(&self, folder: &Path, now: SystemTime) -> Vec<Diagnostic> {
        let section = self.section;
        let file = self.files.certificate();
        let error = |text: String| Diagnostic::error("http::certificate", format!("{section}: {text}"));
        let warning = |text: String| Diagnostic::warning("http::certificate", format!("{section}: {text}"));
        let (chain, key) = match read(&folder.join(file), &folder.join(self.files.key())) {
            Ok(read) => read,
            Err(problem) => {
                let message = format!("{section}: {problem}");
                return vec![Diagnostic::error("http::certificate_file", message)];
            }
        };
        if let Err(problem) = Certificate::new(&chain, &key) {
            return vec![error(format!("{file} and {}: {problem}", self.files.key()))];
        }
        let facts = match CertificateFacts::of(&chain) {
            Ok(facts) => facts,
            Err(problem) => return vec![warning(format!("{file}: {problem}"))],
        };
        let mut problems = Vec::new();
        let renew = "renew it: it is read again once the file changes";
        if facts.ends <= now {
            problems.push(error(format!("{file} ended on {}", day(facts.ends))).hint(renew));
        } else if facts.ends <= now + ENDS_SOON {
            problems.push(warning(format!("{file} ends on {}", day(facts.ends))).hint(renew));
        }
        if facts.begins > now {
            problems.push(error(format!("{file} begins on {}", day(facts.begins))));
        }
        let missing = self.hosts.iter().filter(|host| !facts.has(host));
        problems.extend(missing.map(|host| {
            warning(format!("{file} does not name {host:?}, which is one of the listener's hosts"))
                .hint("clients that check names refuse it there")
        }));
        problems
    }
}

impl CertificateFacts {
    /// Of the first certificate in PEM, the server's own. `Err` says what is wrong with it.
    fn of(chain_pem: &[u8]) -> Result<Self, String> {
        let first = CertificateDer::pem_slice_iter(chain_pem).next().and_then(Result::ok);
        let first = first.filter(|first| first.len() as u64 <= PEM_BYTES_MAX).ok_or("it holds no certificate")?;
        let own = x509_cert::Certificate::from_der(&first).map_err(|error| format!("it cannot be read: {error}"))?;
        let own = own.tbs_certificate;
        let mut names = Vec::new();
        let mut addresses = Vec::new();
        let named = own.get::<SubjectAltName>().map_err(|error| format!("its names cannot be read: {error}"))?;
        for name in named.into_iter().flat_map(|(_, names)| names.0) {
            match name {
                GeneralName::DnsName(name) => names.push(name.as_str().to_ascii_lowercase()),
                GeneralName::IpAddress(octets) => addresses.extend(address(octets.as_bytes())),
                _ => {}
            }
        }
        let begins = own.validity.not_before.to_system_time();
        let ends = own.validity.not_after.to_system_time();
        Ok(Self { begins, ends, names, addresses })
    }

    /// True if it is for this host: a name, which one of its own may stand for with `*` in place of
    /// the first label, or an address.
    fn has(&self, host: &str) -> bool {
        let host = host.to_ascii_lowercase();
        let named = match host.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() && (name.ends_with(']') || !name.contains(':')) => name,
            _ => host.as_str(),
        };
        let named = named.trim_matches(['[', ']']);
        if let Ok(address) = named.parse::<IpAddr>() {
            return self.addresses.contains(&address);
        }
        let parent = named.split_once('.').map(|(_, parent)| parent);
        let stands_for = |name: &str| parent.is_some_and(|parent| name.strip_prefix("*.") == Some(parent));
        self.names.iter().any(|name| name == named || stands_for(name))
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(octets).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from)).ok()
}

/// The day of a time: 2026-11-27.
fn day(time: SystemTime) -> String {
    timestamp(time).split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, KeyPair};
    use toolcell_policy::{Source, parse};

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3_600);

    #[test]
    fn a_certificate_that_clients_will_refuse_is_a_problem_with_its_file_s_name() {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        fs::write(folder.path().join("other.pem"), KeyPair::generate().unwrap().serialize_pem()).unwrap();
        fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
        let now = SystemTime::now();
        let made = |begins: SystemTime, ends: SystemTime| {
            let names = ["tools.example.com", "*.team.example.com", "127.0.0.1"].map(str::to_owned);
            let mut params = CertificateParams::new(names).unwrap();
            params.not_before = begins.into();
            params.not_after = ends.into();
            fs::write(folder.path().join("chain.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        };
        let problems = |key: &str, hosts: &str| {
            let text = format!(
                "version = 1\n[http]\ncertificate = 'chain.pem'\nkey = '{key}.pem'\nhosts = [{hosts}]\n\
                 [components.a]\nsource = 'a.wasm'\n"
            );
            let manifest = parse(&Source { name: "test", text: &text }).unwrap().manifest;
            let problems = check_certificates(&manifest, folder.path());
            problems.iter().map(|problem| problem.message().to_owned()).collect::<Vec<_>>()
        };
        let table = [
            (now - DAY, now + 15 * DAY, "key", "'tools.example.com:8443', 'a.team.example.com', '127.0.0.1'", ""),
            (now - DAY, now + 13 * DAY, "key", "", "[http]: chain.pem ends on 20"),
            (now - 2 * DAY, now - DAY, "key", "", "[http]: chain.pem ended on 20"),
            (now + DAY, now + 30 * DAY, "key", "", "[http]: chain.pem begins on 20"),
            (now - DAY, now + 30 * DAY, "other", "", "[http]: chain.pem and other.pem: the certificate and the key"),
            (now - DAY, now + 30 * DAY, "none", "", "[http]: "),
            (now - DAY, now + 30 * DAY, "key", "'example.com'", "[http]: chain.pem does not name \"example.com\""),
            (now - DAY, now + 30 * DAY, "key", "'b.a.team.example.com'", "[http]: chain.pem does not name"),
            (now - DAY, now + 30 * DAY, "key", "'127.0.0.2'", "[http]: chain.pem does not name"),
        ];
        for (begins, ends, key, hosts, expected) in table {
            made(begins, ends);
            let found = problems(key, hosts);
            assert_eq!(found.len(), usize::from(!expected.is_empty()), "{hosts}: {found:?}");
            assert!(found.iter().all(|text| text.starts_with(expected)), "{found:?}");
        }
    }
}
