//! Lists of a registry that come in pages.
use ::http::header::LINK;
use ::http::{HeaderMap, Method};
use serde::Deserialize;
use toolcell_outbound::{is_same_server, shown};
use toolcell_policy::Reference;
use url::Url;

use crate::client::{RegistryClient, TAGS_MAX};
use crate::document::{MANIFEST_BYTES_MAX, problem};
use crate::error::PullError;
use crate::http::{Ask, next};
use crate::repository::{RegistryRight, Repository};

/// Most pages of a list, so that a registry that sends empty pages comes to an end.
pub(crate) const PAGES_MAX: usize = 100;

/// Tags that are asked for at once.
const TAGS_OF_A_PAGE: &str = "1000";

/// The tags of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tags {
    /// Their names, as the registry sorts them. Those of another form are left out.
    pub names: Vec<String>,
    /// False if there are more than [`TAGS_MAX`], or too many pages.
    pub is_complete: bool,
}

#[derive(Deserialize)]
struct TagsPage {
    // Some registries send `null` for none.
    tags: Option<Vec<String>>,
}

impl RegistryClient {
    /// The tags of a reference's repository, at most [`TAGS_MAX`].
    ///
    /// # Errors
    /// [`PullError`] where the registry does not tell.
    pub async fn tags(&self, reference: &Reference) -> Result<Tags, PullError> {
        let repository = self.repository(reference, RegistryRight::Pull)?;
        let within = self.bounds().tags;
        let late = |_| PullError::Late { host: repository.registry.clone(), step: "list its tags", within };
        tokio::time::timeout(within, self.tags_of(reference, &repository)).await.map_err(late)?
    }

    async fn tags_of(&self, reference: &Reference, repository: &Repository) -> Result<Tags, PullError> {
        let mut url = repository.url("tags/list");
        url.query_pairs_mut().append_pair("n", TAGS_OF_A_PAGE);
        let mut tags = Tags::default();
        for _ in 0..PAGES_MAX {
            let answer = self.ask(repository, Ask::new(Method::GET, url.clone(), self.bounds().answer)).await?;
            let answer = self.checked(repository, answer, "").await?;
            let following = following(&url, &answer.headers);
            let document = answer.document("a list of tags", MANIFEST_BYTES_MAX).await?;
            let page: TagsPage = serde_json::from_slice(&document).map_err(|error| PullError::Document {
                what: format!("the list of tags of {}", reference.name()),
                problem: problem(error),
            })?;
            let left = TAGS_MAX.saturating_sub(tags.names.len());
            let page = page.tags.unwrap_or_default();
            let is_cut = page.len() > left;
            let is_tag = |tag: &String| reference.clone().bare().with_tag(tag).is_ok();
            tags.names.extend(page.into_iter().take(left).filter(is_tag));
            match following {
                None => {
                    tags.is_complete = !is_cut;
                    break;
                }
                Some(following) if !is_cut && tags.names.len() < TAGS_MAX => url = following?,
                Some(_) => break,
            }
        }
        Ok(tags)
    }
}

/// The address of the next page (RFC 8288), if there is one. It must be at the same server.
pub(crate) fn following(url: &Url, headers: &HeaderMap) -> Option<Result<Url, PullError>> {
    let link = headers.get(LINK)?.to_str().ok()?;
    let (target, parameters) = link.trim_start().strip_prefix('<')?.split_once('>')?;
    if !parameters.contains("rel=\"next\"") && !parameters.contains("rel=next") {
        return None;
    }
    let mut headers = HeaderMap::new();
    headers.insert(::http::header::LOCATION, target.parse().ok()?);
    Some(next(url, &headers).and_then(|next| {
        if is_same_server(&next, url) {
            return Ok(next);
        }
        let host = shown(url);
        let to = shown(&next);
        Err(PullError::Redirect { host, to, problem: "which is another server, for the next page" })
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_at_the_same_server() {
        let url = Url::parse("https://a.example/v2/x/tags/list?n=2").unwrap();
        let of = |link: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(LINK, link.parse().unwrap());
            following(&url, &headers).map(|next| next.map(|next| next.to_string()).map_err(|error| error.to_string()))
        };
        let expected = "https://a.example/v2/x/tags/list?last=b".to_owned();
        assert_eq!(of("</v2/x/tags/list?last=b>; rel=\"next\""), Some(Ok(expected)));
        assert_eq!(of("</v2/x>; rel=\"prev\""), None);
        assert_eq!(of("garbage"), None);
        assert!(of("<https://b.example/>; rel=\"next\"").unwrap().unwrap_err().contains("another server"));
        assert!(of("<http://a.example/>; rel=next").unwrap().unwrap_err().contains("not https"));
    }
}
