//! Making the pieces of a result. Holds nothing about whole results.

use crate::{Annotations, Content, MediaContent, Role, TextContent};

impl Content {
    /// A piece of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), annotations: None, meta_json: None })
    }

    /// A picture, as the bytes of its file.
    pub fn image(data: Vec<u8>, mime_type: &str) -> Self {
        Self::Image(MediaContent::new(data, mime_type))
    }

    /// A sound, as the bytes of its file.
    pub fn audio(data: Vec<u8>, mime_type: &str) -> Self {
        Self::Audio(MediaContent::new(data, mime_type))
    }

    /// The same piece with annotations.
    #[must_use]
    pub fn annotated(mut self, annotations: Annotations) -> Self {
        let place = match &mut self {
            Self::Text(text) => &mut text.annotations,
            Self::Image(media) | Self::Audio(media) => &mut media.annotations,
            Self::ResourceLink(link) => &mut link.annotations,
            Self::EmbeddedResource(resource) => &mut resource.annotations,
        };
        *place = Some(annotations);
        self
    }
}

impl MediaContent {
    fn new(data: Vec<u8>, mime_type: &str) -> Self {
        Self { data, mime_type: mime_type.to_owned(), annotations: None, meta_json: None }
    }
}

impl Annotations {
    /// For whom a piece is meant; nothing else is said.
    #[must_use]
    pub fn audience(audience: &[Role]) -> Self {
        Self { audience: audience.to_vec(), priority: None, last_modified: None }
    }

    /// How much it matters, from 0.0 (optional) to 1.0 (effectively required).
    #[must_use]
    pub fn priority(mut self, priority: f64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// When what it shows was last changed, in ISO 8601.
    #[must_use]
    pub fn last_modified(mut self, time: &str) -> Self {
        self.last_modified = Some(time.to_owned());
        self
    }
}
