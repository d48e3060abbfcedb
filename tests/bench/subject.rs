//! What can be measured: a program that answers lines on its stdin with lines on its stdout. toolcell is one, this
//! program as a native child is another; any MCP server that has a tool like `echo` can be a further one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::native::Native;

/// A program to start and ask.
#[derive(Clone)]
pub struct Subject {
    /// What to call it in errors.
    pub name: &'static str,
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

impl Subject {
    /// `toolcell serve` with this manifest.
    pub fn toolcell(manifest: &Path) -> Self {
        let arguments = vec!["serve".into(), "--manifest".into(), manifest.into()];
        Self { name: "toolcell", program: toolcell_tests::toolcell(), arguments }
    }

    /// The same, with every call recorded in this file.
    pub fn audited(manifest: &Path, record: &Path) -> Self {
        let mut subject = Self::toolcell(manifest);
        subject.arguments.extend(["--audit".into(), record.into()]);
        subject
    }

    /// This program as a native child.
    ///
    /// # Errors
    /// It does not know where it is.
    pub fn native(native: Native) -> anyhow::Result<Self> {
        Ok(Self { name: "native child", program: std::env::current_exe()?, arguments: vec![native.flag().into()] })
    }
}
