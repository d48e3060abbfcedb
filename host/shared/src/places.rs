//! A place among those that run at once.

/// A place among those that run at once, released when dropped.
#[derive(Default)]
#[must_use = "a place is left when it is dropped"]
pub struct Place {
    leave: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Place {
    /// A place that calls this when it is released.
    pub(crate) fn new(leave: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self { leave: Some(Box::new(leave)) }
    }

    /// Drops it without releasing anything, because it was not taken.
    pub(crate) fn forget(mut self) {
        self.leave = None;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(leave) = self.leave.take() {
            leave();
        }
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Place").field("is_counted", &self.leave.is_some()).finish()
    }
}
