//! The two directions of a TCP connection, with each byte charged to the call. Must not hold: their
//! targets.
use std::sync::Arc;

use bytes::Bytes;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, InputStream, OutputStream, Pollable, StreamError, StreamResult,
};

use crate::wasi::net::CallNet;

/// The incoming direction.
pub(super) struct ChargedInput {
    inner: DynInputStream,
    net: Arc<CallNet>,
}

/// The outgoing direction.
pub(super) struct ChargedOutput {
    inner: DynOutputStream,
    net: Arc<CallNet>,
}

impl ChargedInput {
    pub(super) fn new(inner: DynInputStream, net: Arc<CallNet>) -> Self {
        Self { inner, net }
    }
}

impl ChargedOutput {
    pub(super) fn new(inner: DynOutputStream, net: Arc<CallNet>) -> Self {
        Self { inner, net }
    }
}

#[async_trait]
impl Pollable for ChargedInput {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[async_trait]
impl InputStream for ChargedInput {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let bytes = self.inner.read(size)?;
        if self.net.charge_ingress(bytes.len() as u64) { Ok(bytes) } else { Err(over("ingress")) }
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

#[async_trait]
impl Pollable for ChargedOutput {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[async_trait]
impl OutputStream for ChargedOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let wanted = bytes.len() as u64;
        let taken = self.net.take_egress(wanted);
        if taken < wanted {
            self.net.give_back_egress(taken);
            return Err(over("egress"));
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}

fn over(limit: &str) -> StreamError {
    StreamError::LastOperationFailed(wasmtime::Error::msg(format!("the call has used its whole limit \"{limit}\"")))
}
