//! What clients are told of the server as a resource: its metadata (RFC 9728), and challenges (RFC 6750).

use http::Uri;

use super::token::TokenFault;
use crate::http::AuthFailure;

/// Where metadata of resources lie (RFC 9728 section 3).
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The server, as clients know it.
#[derive(Clone, Debug)]
pub struct Resource {
    /// Where its metadata is.
    metadata: String,
    /// The path of the resource.
    path: String,
    document: String,
    /// What every caller needs, with spaces between.
    scope: String,
}

impl Resource {
    /// The resource at this address, for tokens of these issuers. `needed` are the scopes that every caller needs,
    /// `known` those that allow anything besides. Nothing where the address is none.
    #[must_use]
    pub fn new(address: &str, issuers: &[&str], needed: &[&str], known: &[&str]) -> Option<Self> {
        let uri: Uri = address.parse().ok()?;
        let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
        let path = uri.path().trim_end_matches('/').to_owned();
        let metadata = format!("{scheme}://{authority}{WELL_KNOWN}{path}");
        let mut scopes = needed.to_vec();
        scopes.extend(known.iter().filter(|scope| !needed.contains(scope)));
        let mut document = serde_json::json!({
            "resource": address,
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
        });
        if let Some(document) = document.as_object_mut().filter(|_| !scopes.is_empty()) {
            document.insert("scopes_supported".to_owned(), scopes.into());
        }
        let document = document.to_string();
        Some(Self { metadata, path, document, scope: needed.join(" ") })
    }

    /// The metadata, if they lie at this path.
    #[must_use]
    pub fn metadata_at(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(WELL_KNOWN)?;
        (rest.is_empty() || rest == self.path).then(|| self.document.clone())
    }

    /// What a caller is told that shows no token, or one that does not hold.
    #[must_use]
    pub fn unknown(&self, fault: Option<TokenFault>) -> AuthFailure {
        let error = fault.map(|fault| format!("error=\"invalid_token\", error_description=\"{fault}\", "));
        let scope = if self.scope.is_empty() { String::new() } else { format!(", scope=\"{}\"", self.scope) };
        let challenge = format!("Bearer {}resource_metadata=\"{}\"{scope}", error.unwrap_or_default(), self.metadata);
        AuthFailure::Unknown { challenge }
    }

    /// What a caller is told whose token holds and lacks a scope that every caller needs.
    #[must_use]
    pub fn insufficient(&self) -> AuthFailure {
        let (scope, metadata) = (&self.scope, &self.metadata);
        AuthFailure::NotAllowed {
            challenge: format!(
                "Bearer error=\"insufficient_scope\", scope=\"{scope}\", resource_metadata=\"{metadata}\""
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_lie_between_host_and_path() {
        for (address, metadata, paths) in [
            ("https://a.example/mcp", "https://a.example/.well-known/oauth-protected-resource/mcp", ["", "/mcp"]),
            ("https://a.example:8443", "https://a.example:8443/.well-known/oauth-protected-resource", ["", ""]),
            ("https://a.example/", "https://a.example/.well-known/oauth-protected-resource", ["", ""]),
        ] {
            let resource = Resource::new(address, &["https://i.example"], &["a"], &["b", "a"]).unwrap();
            for path in paths {
                let document = resource.metadata_at(&format!("{WELL_KNOWN}{path}")).unwrap();
                let document: serde_json::Value = serde_json::from_str(&document).unwrap();
                assert_eq!(document["resource"], address);
                assert_eq!(document["authorization_servers"], serde_json::json!(["https://i.example"]));
                assert_eq!(document["scopes_supported"], serde_json::json!(["a", "b"]));
            }
            for path in ["/mcp", "/.well-known/oauth-protected-resource/", "/.well-known/oauth-protected-resource/x"] {
                assert_eq!(resource.metadata_at(path), None, "{path}");
            }
            let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"a\"");
            assert_eq!(resource.unknown(None), AuthFailure::Unknown { challenge });
        }
        assert!(Resource::new("/mcp", &[], &[], &[]).is_none());
    }
}
