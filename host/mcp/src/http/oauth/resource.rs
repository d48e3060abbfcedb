//! The server's metadata as a resource (RFC 9728), and its challenges (RFC 6750).

use http::Uri;

use super::token::TokenFault;
use crate::http::AuthFailure;

/// The path prefix of resource metadata (RFC 9728 section 3).
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// The server as an OAuth resource.
#[derive(Clone, Debug)]
pub struct ProtectedResource {
    /// The address of its metadata.
    metadata: String,
    /// The path of the resource.
    path: String,
    document: String,
    /// The scopes that every caller needs, separated by spaces.
    scope: String,
}

impl ProtectedResource {
    /// The resource at this address, for tokens of these issuers. Every caller needs the scopes in
    /// `needed`; those in `known` allow more. `None` if the address is not one.
    #[must_use]
    pub fn new(address: &str, issuers: &[&str], needed: &[&str], known: &[&str]) -> Option<Self> {
        let uri: Uri = address.parse().ok()?;
        let scheme = uri.scheme_str()?;
        let authority = uri.authority()?;
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

    /// The metadata, if they are at this path.
    #[must_use]
    pub fn metadata_at(&self, path: &str) -> Option<String> {
        let rest = path.strip_prefix(WELL_KNOWN)?;
        // A trailing slash makes no difference.
        let is_own = rest == self.path || (!self.path.is_empty() && rest.strip_suffix('/') == Some(&self.path));
        (rest.is_empty() || is_own).then(|| self.document.clone())
    }

    /// The challenge to a caller without a valid token.
    #[must_use]
    pub fn unknown(&self, fault: Option<TokenFault>) -> AuthFailure {
        let error = fault.map(|fault| format!("error=\"invalid_token\", error_description=\"{fault}\", "));
        let scope = if self.scope.is_empty() { String::new() } else { format!(", scope=\"{}\"", self.scope) };
        let challenge = format!("Bearer {}resource_metadata=\"{}\"{scope}", error.unwrap_or_default(), self.metadata);
        AuthFailure::Unknown { challenge }
    }

    /// The challenge to a caller whose valid token lacks a scope that every caller needs.
    #[must_use]
    pub fn insufficient(&self) -> AuthFailure {
        let scope = &self.scope;
        let metadata = &self.metadata;
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
            let resource = ProtectedResource::new(address, &["https://i.example"], &["a"], &["b", "a"]).unwrap();
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
        assert!(ProtectedResource::new("/mcp", &[], &[], &[]).is_none());
    }
}
