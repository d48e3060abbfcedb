//! Reading a file or an entry of state as a resource: its caller's rate, the content, the audit
//! record.
use toolcell_audit::{Clipped, Event, ResourceRead};
use toolcell_mcp::{HostContents, HostReading, NotRead, ResourceBody, ServedCatalog as _};

use crate::catalog::{Catalog, HostSource, take_of_caller};
use crate::resources::folders::{ReadFile, ReadProblem};
use crate::resources::kept_entries::NotNow;

impl Catalog {
    /// Reads for a caller who may see it. Nothing is returned without a record.
    pub(super) async fn read_by_host(&self, reading: &HostReading) -> Result<HostContents, NotRead> {
        if let Some((_, held)) = self.resources.held(&reading.uri) {
            let read = self.within_rate(reading).await.map(|()| held.contents());
            return self.record_read(reading, held.holder, read);
        }
        let Some((_, origin)) = self.resources.reader(&reading.uri) else { return Err(NotRead::Unknown) };
        let read = self.within_rate(reading).await;
        let read = match (read, &origin.source) {
            (Ok(()), Some(HostSource::Folder(folder))) => match folder.path_of(&reading.uri) {
                Some(path) => self.services.files.read(folder, path).await.map_err(not_read),
                None => Err(NotRead::Unknown),
            },
            (Ok(()), Some(HostSource::Entries(entries))) => {
                let read = self.services.entries.read(entries, &reading.uri, reading.caller.name()).await;
                match read {
                    Ok(found) => found.ok_or(NotRead::Unknown),
                    Err(NotNow) => Err(NotRead::Failed("The resource cannot be read now: try again".to_owned())),
                }
            }
            (Ok(()), None) => Err(NotRead::Unknown),
            (Err(refused), _) => Err(refused),
        };
        let read = read.map(|ReadFile { mime_type, content }| HostContents {
            mime_type: Some(mime_type),
            body: content.map_or_else(ResourceBody::Blob, ResourceBody::Text),
            meta: toolcell_mcp::Map::new(),
            is_private: origin.is_per_caller(),
        });
        self.record_read(reading, origin.component.name(), read)
    }

    /// Records a read. `Err` if that fails: then nothing is returned.
    fn record_read(
        &self,
        reading: &HostReading,
        component: &str,
        read: Result<HostContents, NotRead>,
    ) -> Result<HostContents, NotRead> {
        let (outcome, bytes) = match &read {
            Ok(HostContents { body: ResourceBody::Text(text), .. }) => ("read", text.len()),
            Ok(HostContents { body: ResourceBody::Blob(bytes), .. }) => ("read", bytes.len()),
            Err(NotRead::Unknown) => ("unknown", 0),
            Err(NotRead::Refused(_)) => ("refused", 0),
            Err(NotRead::Failed(_)) => ("failed", 0),
        };
        let record = ResourceRead {
            generation: self.tools().generation(),
            revision: reading.revision.name(),
            caller: Clipped(reading.caller.name()),
            request: Clipped(&reading.request_id),
            component,
            uri: Clipped(&reading.uri),
            outcome,
            bytes: bytes as u64,
        };
        if let Err(error) = self.services.sink.record(|| Event::ResourceRead(record)) {
            tracing::error!("a resource is not given out, as the audit cannot be written: {error}");
            return Err(NotRead::Failed("The resource cannot be read now".to_owned()));
        }
        read
    }

    async fn within_rate(&self, reading: &HostReading) -> Result<(), NotRead> {
        let rates = self.visibility.rights(&reading.caller).rates();
        let taken = take_of_caller(&*self.services.state, reading.caller.name(), rates).await;
        taken.map_err(|refusal| NotRead::Refused(refusal.to_string()))
    }
}

fn not_read(problem: ReadProblem) -> NotRead {
    match problem {
        ReadProblem::Missing => NotRead::Unknown,
        ReadProblem::TooLarge(_) => NotRead::Refused(problem.to_string()),
        ReadProblem::Late => NotRead::Failed(problem.to_string()),
    }
}
