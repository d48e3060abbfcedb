//! The content security policy of every page, and the other headers that belong to it.

/// The policy: everything comes from the console's own address, scripts and styles are files, and
/// no page may stand in a frame. Pictures of results are `data:` addresses.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Headers of every page, name and value. Assets may be kept: see
/// [`Asset::CACHE_CONTROL`](crate::asset::Asset::CACHE_CONTROL).
pub const PAGE_HEADERS: [(&str, &str); 8] = [
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
];
