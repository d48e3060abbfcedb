//! Searching a registry of MCP servers for entries that hold components. Must not hold: registries
//! of components, which are not asked.
//!
//! The API is that of the MCP registry, `GET /v0.1/servers`. An entry says of an OCI package where
//! it is, and at most what runs it. So [`Hint`] is all that a search knows: what is behind a
//! reference is seen once it is pulled.
mod entry;
mod page;

use std::collections::BTreeSet;
use std::time::Duration;

use ::http::header::ACCEPT;
use ::http::{HeaderValue, Method};
use toolcell_outbound::shown;
use toolcell_policy::Reference;
use url::Url;

use crate::client::RegistryClient;
use crate::document::problem;
use crate::error::PullError;
use crate::http::Ask;
use page::CataloguePage;

/// The registry that the project itself runs.
pub const MCP_REGISTRY: &str = "https://registry.modelcontextprotocol.io";

/// Longest word that is searched for, in characters: names of servers have at most 200.
pub const SEARCH_WORD_CHARS_MAX: usize = 200;

/// Most pages of one search: with `SERVERS_OF_A_PAGE` entries each, more than anybody reads.
pub const SEARCH_PAGES_MAX: usize = 20;

/// Entries that are asked for at once. The public registry gives 100 at most.
const SERVERS_OF_A_PAGE: &str = "50";

/// Most bytes of a page: fifty entries with 20 KiB each, several times the usual ones.
const PAGE_BYTES_MAX: usize = 1 << 20;

/// Time of a whole search, several times what the public registry takes for all its pages.
const SEARCH_WITHIN: Duration = Duration::from_secs(60);

/// Last part of the path of the API, before `/servers`.
const VERSION_PATH: &str = "v0.1";

/// Result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchResult {
    /// Entries with an OCI package that may be a component, in the registry's order.
    pub servers: Vec<FoundServer>,
    /// How many entries were examined.
    pub looked_at: usize,
    /// False if there are more pages than are asked for, or an entry could not be read.
    pub is_complete: bool,
}

/// An entry. Its texts are shortened to their bounds, and otherwise as the registry sends them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundServer {
    /// Name in the registry, such as `io.github.acme/weather`; at most 200 characters.
    pub name: String,
    /// Name for people; at most 200 characters.
    pub title: Option<String>,
    /// One sentence; at most 500 characters.
    pub description: String,
    /// Version of the server; at most 100 characters.
    pub version: String,
    /// True if the publisher advises against it.
    pub is_deprecated: bool,
    /// Its OCI packages, one to sixteen.
    pub packages: Vec<FoundPackage>,
}

/// An OCI package of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPackage {
    /// Where it is.
    pub reference: Reference,
    /// What the entry says about it.
    pub hint: Hint,
}

/// What an entry says about an OCI package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hint {
    /// `runtimeHint` names a runtime of WebAssembly, or the publisher's `_meta` its media type.
    Component,
    /// Nothing that distinguishes it from an image.
    Unsaid,
}

impl RegistryClient {
    /// Searches a registry of MCP servers for a word in their names. `address` is the base address
    /// of its API, such as [`MCP_REGISTRY`]. No credentials are sent.
    ///
    /// # Errors
    /// [`PullError`] if the registry does not answer, or not as expected.
    pub async fn search(&self, address: &Url, word: &str) -> Result<SearchResult, PullError> {
        let late = |_| PullError::Late { host: shown(address), step: "answer a search", within: SEARCH_WITHIN };
        tokio::time::timeout(SEARCH_WITHIN, self.search_pages(address, word)).await.map_err(late)?
    }

    async fn search_pages(&self, address: &Url, word: &str) -> Result<SearchResult, PullError> {
        let mut result = SearchResult { is_complete: true, ..SearchResult::default() };
        let mut cursor = None;
        let mut names = BTreeSet::new();
        for _ in 0..SEARCH_PAGES_MAX {
            let page = self.page(address, word, cursor.as_deref()).await?;
            result.looked_at = result.looked_at.saturating_add(page.entries.len()).saturating_add(page.left_out);
            result.is_complete &= page.left_out == 0;
            for text in &page.entries {
                match entry::read(text.get()) {
                    // A registry may list a version of a server on two pages.
                    Ok(Some(server)) if names.insert((server.name.clone(), server.version.clone())) => {
                        result.servers.push(server);
                    }
                    Ok(_) => {}
                    Err(_) => result.is_complete = false,
                }
            }
            match page.next_cursor {
                None => return Ok(result),
                // An empty page, or one that points to itself, would never end.
                Some(next) if page.entries.is_empty() || cursor.as_ref() == Some(&next) => break,
                next => cursor = next,
            }
        }
        result.is_complete = false;
        Ok(result)
    }

    async fn page(&self, address: &Url, word: &str, cursor: Option<&str>) -> Result<CataloguePage, PullError> {
        let mut url = address.clone();
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix(VERSION_PATH).map_or(path, |path| path.trim_end_matches('/'));
        let path = format!("{path}/{VERSION_PATH}/servers");
        url.set_path(&path);
        url.query_pairs_mut()
            .clear()
            .append_pair("search", word)
            .append_pair("version", "latest")
            .append_pair("limit", SERVERS_OF_A_PAGE)
            .extend_pairs(cursor.map(|cursor| ("cursor", cursor)));
        let ask = Ask::new(Method::GET, url, self.bounds().answer)
            .header(ACCEPT, HeaderValue::from_static("application/json"));
        let answer = self.http.send(&ask).await?;
        match answer.status.as_u16() {
            200 => {}
            404 => {
                return Err(PullError::NotFound {
                    host: shown(address),
                    what: "the API of a registry of MCP servers".to_owned(),
                });
            }
            429 => return Err(PullError::RateLimited(shown(address))),
            _ => return Err(answer.into_status_error().await),
        }
        let document = answer.document("a page of servers", PAGE_BYTES_MAX).await?;
        serde_json::from_slice(&document).map_err(|error| PullError::Document {
            what: format!("the list of servers of {}", shown(address)),
            problem: problem(error),
        })
    }
}
