//! Addresses of an authorization server: where its metadata lie, and which may be fetched from.
//! Must not hold: fetching.
use url::Url;

/// Path of the metadata of authorization servers (RFC 8414 section 3), and of OpenID providers.
const METADATA: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Possible addresses of an issuer's metadata: between host and path, or after the path.
pub fn metadata_of(issuer: &str) -> Vec<String> {
    let Ok(url) = Url::parse(issuer) else { return Vec::new() };
    let path = url.path().trim_end_matches('/').to_owned();
    let at = |path: String| {
        let mut url = url.clone();
        url.set_path(&path);
        url.to_string()
    };
    vec![at(format!("{METADATA}{path}")), at(format!("{path}{OPENID}"))]
}

/// True if nobody on the network can change the answer.
pub fn is_safe(url: &Url) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url))
}

/// True if the address is this machine's.
pub fn is_loopback(url: &Url) -> bool {
    match url.host_str().unwrap_or_default() {
        "localhost" => true,
        host => host.trim_matches(['[', ']']).parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_lie_between_host_and_path_or_behind_it() {
        let at = |issuer: &str| metadata_of(issuer);
        let host = "https://login.example.com";
        assert_eq!(at(host), [format!("{host}{METADATA}"), format!("{host}{OPENID}")]);
        assert_eq!(at("https://login.example.com/"), at(host));
        assert_eq!(
            at("https://login.example.com/tenant"),
            [format!("{host}{METADATA}/tenant"), format!("{host}/tenant{OPENID}")]
        );
    }

    #[test]
    fn only_https_and_loopback_are_fetched_from() {
        for (address, safe) in [
            ("https://login.example.com/keys", true),
            ("http://127.0.0.1:9/keys", true),
            ("http://localhost/keys", true),
            ("http://[::1]:9/keys", true),
            ("http://login.example.com/keys", false),
            ("http://127.0.0.1.example.com/keys", false),
            ("file:///etc/passwd", false),
        ] {
            assert_eq!(is_safe(&Url::parse(address).unwrap()), safe, "{address}");
        }
    }
}
