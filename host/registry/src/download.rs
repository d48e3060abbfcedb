//! Downloads of layers into the store: each resumes where an earlier one stopped.
use std::time::Duration;

use ::http::header::{CONTENT_RANGE, RANGE};
use ::http::{HeaderValue, Method, StatusCode};
use tokio::time::Instant;

use crate::client::RegistryClient;
use crate::document::{Descriptor, starts_compressed};
use crate::error::{Compression, PullError, StoreError};
use crate::http::{Answer, Ask, Rate};
use crate::length;
use crate::pull::Progress;
use crate::repository::Repository;
use crate::store::{Finished, Partial, Store};

/// Most connections for one layer, as long as each brings some bytes.
const ATTEMPTS_MAX: u32 = 8;

/// Time between two polls of a download that another process makes.
const WAIT_PAUSE: Duration = Duration::from_millis(50);

/// A layer or a config to download.
pub(crate) struct Download<'d> {
    pub(crate) client: &'d RegistryClient,
    pub(crate) repository: &'d Repository,
    pub(crate) store: &'d Store,
    pub(crate) part: &'d Descriptor,
    /// True for the component itself, which is never compressed.
    pub(crate) is_component: bool,
    pub(crate) progress: &'d (dyn Fn(Progress) + Send + Sync),
}

/// Runs something that reads or writes whole files on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, PullError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(error) => Err(PullError::Store(StoreError::files("working on", "the store")(std::io::Error::other(error)))),
    }
}

impl Download<'_> {
    /// Downloads the part into the store. Returns the number of bytes received.
    pub(crate) async fn run(&self) -> Result<u64, PullError> {
        let ends = Instant::now() + self.client.bounds().whole;
        loop {
            if self.is_there().await? {
                return Ok(0);
            }
            let store = self.store.clone();
            let digest = self.part.digest.clone();
            if let Some(partial) = blocking(move || store.partial(&digest)).await? {
                // Another process may have made the blob between the look and the lock. Then this
                // file is a new one.
                if partial.bytes() == 0 && self.is_there().await? {
                    partial.discard();
                    return Ok(0);
                }
                return self.fill(partial, ends).await;
            }
            if Instant::now() >= ends {
                return Err(PullError::Store(StoreError::Busy("downloads the same component")));
            }
            tokio::time::sleep(WAIT_PAUSE).await;
        }
    }

    async fn is_there(&self) -> Result<bool, PullError> {
        let store = self.store.clone();
        let digest = self.part.digest.clone();
        let size = self.part.size;
        blocking(move || Ok(store.has_blob(&digest, size))).await
    }

    /// Fills the file and makes it a blob. All connections together share the deadline `ends`.
    async fn fill(&self, mut partial: Partial, ends: Instant) -> Result<u64, PullError> {
        let host = &self.repository.registry;
        let within = self.client.bounds().whole;
        let late = |_| PullError::Late { host: host.clone(), step: "send a layer", within };
        let mut came = 0;
        let mut resumed = partial.bytes() > 0;
        loop {
            came += tokio::time::timeout_at(ends, self.fetch_all(&mut partial)).await.map_err(late)??;
            let digest = self.part.digest.clone();
            let finished;
            (partial, finished) = blocking(move || partial.finish(&digest).map(|finished| (partial, finished))).await?;
            match finished {
                Finished::Blob => return Ok(came),
                // The bytes of an earlier download were wrong: everything is downloaded again.
                Finished::Wrong(_) if resumed => resumed = false,
                Finished::Wrong(found) => {
                    let expected = self.part.digest.clone();
                    return Err(PullError::WrongDigest { host: host.clone(), expected, found });
                }
            }
        }
    }

    /// Fills the file to the size of the part, over several connections if needed.
    async fn fetch_all(&self, partial: &mut Partial) -> Result<u64, PullError> {
        let mut came = 0;
        let mut attempts = 1;
        loop {
            let before = partial.bytes();
            let fetched = self.fetch(partial).await;
            let new = partial.bytes().saturating_sub(before);
            came += new;
            match fetched {
                Ok(()) => return Ok(came),
                Err(error) if error.is_of_the_connection() => {
                    if new == 0 || attempts >= ATTEMPTS_MAX {
                        return Err(error);
                    }
                    attempts += 1;
                }
                Err(error) => {
                    if error.is_a_lie() {
                        partial.restart()?;
                    }
                    return Err(error);
                }
            }
        }
    }

    async fn fetch(&self, partial: &mut Partial) -> Result<(), PullError> {
        if partial.bytes() > self.part.size {
            partial.restart()?;
        }
        if partial.bytes() == self.part.size {
            return Ok(());
        }
        let mut answer = self.ask(partial.bytes()).await?;
        if partial.bytes() > 0 && !self.goes_on(&answer, partial.bytes()) {
            match answer.status {
                StatusCode::OK => partial.restart()?,
                StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE => {
                    partial.restart()?;
                    answer = self.ask(0).await?;
                }
                // An error may come after some bytes.
                _ => {}
            }
        }
        let name = format!("@{}", self.part.digest);
        let mut answer = self.client.checked(self.repository, answer, &name).await?;
        if answer.is_coded() {
            return Err(self.compressed(Compression::Other));
        }
        let left = self.part.size.saturating_sub(partial.bytes());
        match answer.length() {
            Some(length) if length > left => return Err(self.longer()),
            Some(length) if length < left => return Err(self.shorter(partial.bytes().saturating_add(length))),
            _ => {}
        }
        self.read(&mut answer, partial).await
    }

    async fn ask(&self, from: u64) -> Result<Answer, PullError> {
        let url = self.repository.url(&format!("blobs/{}", self.part.digest));
        let mut ask = Ask::new(Method::GET, url, self.client.bounds().answer);
        let range = HeaderValue::from_str(&format!("bytes={from}-"));
        if let Some(range) = range.ok().filter(|_| from > 0) {
            ask = ask.header(RANGE, range);
        }
        self.client.ask(self.repository, ask).await
    }

    /// True if the answer continues the part (RFC 9110, section 14.4).
    fn goes_on(&self, answer: &Answer, from: u64) -> bool {
        let range = answer.headers.get(CONTENT_RANGE).and_then(|range| range.to_str().ok()).unwrap_or_default();
        let last = self.part.size.saturating_sub(1);
        let is_rest = [format!("bytes {from}-{last}/{}", self.part.size), format!("bytes {from}-{last}/*")];
        answer.status == StatusCode::PARTIAL_CONTENT && is_rest.iter().any(|rest| rest == range)
    }

    async fn read(&self, answer: &mut Answer, partial: &mut Partial) -> Result<(), PullError> {
        let mut rate = Rate::new(*self.client.bounds());
        while let Some(piece) = answer.piece(&mut rate).await? {
            let length = length(&piece);
            if partial.bytes().saturating_add(length) > self.part.size {
                return Err(self.longer());
            }
            if let Some(compression) = starts_compressed(&piece).filter(|_| self.is_component && partial.bytes() == 0) {
                return Err(self.compressed(compression));
            }
            partial.append(&piece)?;
            (self.progress)(Progress { bytes: partial.bytes(), total: self.part.size });
        }
        if partial.bytes() < self.part.size { Err(self.shorter(partial.bytes())) } else { Ok(()) }
    }

    fn longer(&self) -> PullError {
        let host = self.repository.registry.clone();
        let digest = self.part.digest.clone();
        PullError::Longer { host, digest, said: self.part.size }
    }

    fn shorter(&self, found: u64) -> PullError {
        let host = self.repository.registry.clone();
        let digest = self.part.digest.clone();
        PullError::Shorter { host, digest, said: self.part.size, found }
    }

    fn compressed(&self, compression: Compression) -> PullError {
        PullError::Compressed { digest: self.part.digest.clone(), compression }
    }
}
