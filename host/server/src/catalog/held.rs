//! Files that the host keeps in memory and returns as resources: those of skills, and views.
use std::collections::BTreeMap;
use std::sync::Arc;

use toolcell_mcp::{DeclaredResource, HostContents, Map, ResourceBody, normal_uri};

use crate::resources::folders::media_type;

/// One file.
#[derive(Clone, Debug)]
pub struct HeldFile {
    /// The name of its kind, for records in place of a component's name.
    pub holder: &'static str,
    /// Index of its resource in [`HeldFiles::declared`]. All files of a skill share one.
    pub declared: usize,
    /// Its media type.
    pub mime_type: String,
    /// Its content.
    pub body: HeldBody,
    /// `_meta` of its content.
    pub meta: Map,
    /// `sha256:…` of all that clients get of it.
    pub digest: String,
}

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldBody {
    /// UTF-8 without zero bytes.
    Text(Arc<str>),
    /// Anything else.
    Bytes(Arc<[u8]>),
}

/// All kept files, by address.
#[derive(Debug, Default)]
pub struct HeldFiles {
    pub declared: Vec<DeclaredResource>,
    pub files: BTreeMap<String, HeldFile>,
}

impl HeldBody {
    pub fn of(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Self::Text(text.into()),
            Ok(text) => Self::Bytes(text.into_bytes().into()),
            Err(error) => Self::Bytes(error.into_bytes().into()),
        }
    }

    /// Its length, in bytes.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// The media type according to the name, or else to the content.
    pub fn mime_type(&self, name: &str) -> &'static str {
        let otherwise = if matches!(self, Self::Text(_)) { media_type::TEXT } else { media_type::BYTES };
        media_type::of_name(name).unwrap_or(otherwise)
    }
}

impl HeldFile {
    pub fn contents(&self) -> HostContents {
        let body = match &self.body {
            HeldBody::Text(text) => ResourceBody::Text(text.as_ref().to_owned()),
            HeldBody::Bytes(bytes) => ResourceBody::Blob(bytes.to_vec()),
        };
        HostContents { mime_type: Some(self.mime_type.clone()), body, meta: self.meta.clone(), is_private: false }
    }
}

impl HeldFiles {
    /// The file of an address in any spelling, with its resource.
    pub fn find(&self, uri: &str) -> Option<(&DeclaredResource, &HeldFile)> {
        let file = self.files.get(&normal_uri(uri))?;
        Some((self.declared.get(file.declared)?, file))
    }

    /// Adds the files of another collection after these.
    pub fn extend(&mut self, others: Self) {
        let before = self.declared.len();
        self.declared.extend(others.declared);
        let moved = others.files.into_iter().map(|(uri, file)| {
            let declared = file.declared + before;
            (uri, HeldFile { declared, ..file })
        });
        self.files.extend(moved);
    }
}
