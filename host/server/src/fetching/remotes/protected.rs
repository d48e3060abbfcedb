//! What a server that wants a login publishes about it (RFC 9728), as lines of a manifest.
use std::fmt::Write as _;

use serde::Deserialize;
use toolcell_outbound::{is_protected, is_same_server};
use url::Url;

/// Path of the metadata of protected resources.
const METADATA: &str = "/.well-known/oauth-protected-resource";

/// Scopes that are written. 20: servers publish up to ten.
const SCOPES_MAX: usize = 20;

/// Longest issuer, scope or resource that is written, in bytes.
const TEXT_BYTES_MAX: usize = 200;

#[derive(Deserialize)]
struct Published {
    #[serde(default)]
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<String>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// Where the metadata of this server may be: where its `WWW-Authenticate` says, if that is the
/// server itself, and at the places of the standard.
pub(super) fn addresses(server: &Url, challenge: &str) -> Vec<Url> {
    let named = challenge.split_once("resource_metadata=\"").and_then(|(_, rest)| rest.split_once('"'));
    let named = named.and_then(|(address, _)| Url::parse(address).ok()).filter(|url| is_same_server(url, server));
    let at = |path: &str| {
        let mut url = server.clone();
        url.set_path(path);
        url
    };
    let path = server.path().trim_end_matches('/');
    let mut addresses: Vec<Url> = named.into_iter().collect();
    for url in [at(&format!("{METADATA}{path}")), at(METADATA)] {
        if !addresses.contains(&url) {
            addresses.push(url);
        }
    }
    addresses
}

/// Advice to log in, from the metadata; `None` where they name no authorization server.
pub(super) fn advice(metadata: &[u8]) -> Option<String> {
    let published: Published = serde_json::from_slice(metadata).ok()?;
    let issuer = published.authorization_servers.iter().find(|issuer| is_issuer(issuer))?;
    let scopes = published.scopes_supported.iter().filter(|scope| is_plain(scope)).take(SCOPES_MAX);
    let scopes: Vec<String> = scopes.map(|scope| format!("\"{scope}\"")).collect();
    let mut lines =
        format!("[oauth.mcp]\nissuer = \"{issuer}\"\nclient_id = \"…\"\nscopes = [{}]\n", scopes.join(", "));
    if is_plain(&published.resource) {
        let _ = writeln!(lines, "resource = \"{}\"", published.resource);
    }
    Some(format!(
        "it wants a login. Register a client with its authorization server, and write into the manifest:\n\n{lines}\n\
         Then `toolcell secret login mcp` logs in, and --header Authorization='Bearer oauth:mcp' adds the server"
    ))
}

fn is_issuer(address: &str) -> bool {
    is_plain(address) && Url::parse(address).is_ok_and(|url| is_protected(&url))
}

/// True for what stands in a text of TOML as it is.
fn is_plain(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"\\".contains(&byte);
    !text.is_empty() && text.len() <= TEXT_BYTES_MAX && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_are_where_the_server_says_and_never_elsewhere() {
        let at = |challenge: &str| -> Vec<String> {
            let server = Url::parse("https://mcp.example.com/v1/mcp").unwrap();
            addresses(&server, challenge).iter().map(Url::to_string).collect()
        };
        let host = "https://mcp.example.com";
        let usual = [format!("{host}{METADATA}/v1/mcp"), format!("{host}{METADATA}")];
        assert_eq!(at("Bearer"), usual);
        assert_eq!(at("Bearer resource_metadata=\"https://other.example/x\""), usual);
        assert_eq!(at("Bearer resource_metadata=\"http://mcp.example.com/x\""), usual);
        let named = at(&format!("Bearer error=\"invalid_token\", resource_metadata=\"{host}/meta\""));
        assert_eq!(named.first().map(String::as_str), Some("https://mcp.example.com/meta"));
        assert_eq!(named.len(), 3);
    }

    #[test]
    fn advice_has_the_lines_of_the_login_and_nothing_that_ends_them() {
        let of = |published: serde_json::Value| advice(published.to_string().as_bytes());
        let text = of(serde_json::json!({
            "resource": "https://mcp.example.com/mcp",
            "authorization_servers": ["https://a.example/\"\n[x]", "ftp://a.example", "https://login.example.com"],
            "scopes_supported": ["notes.read", "a\" b"],
        }))
        .unwrap();
        let lines = "[oauth.mcp]\nissuer = \"https://login.example.com\"\nclient_id = \"…\"\nscopes = [\"notes.read\"]\n\
                     resource = \"https://mcp.example.com/mcp\"\n";
        assert!(text.contains(lines), "{text}");
        for published in [serde_json::json!({}), serde_json::json!({"authorization_servers": ["http://10.0.0.1/"]})] {
            assert_eq!(of(published), None);
        }
    }
}
