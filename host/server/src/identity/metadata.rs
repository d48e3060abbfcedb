//! Addresses of an authorization server's metadata.
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
}
