//! A record of a topic, as any client sees it.

/// What is sent to and read from a topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    /// Partition; when sent, `None` leaves the choice to the client (murmur2 of the key).
    pub(crate) partition: Option<i32>,
    /// Offset; given by the broker, and not looked at when sent.
    pub(crate) offset: Option<i64>,
    /// Milliseconds since 1970; when sent, `None` is now.
    pub(crate) time_ms: Option<i64>,
    /// The key; `None` is no key, which is not the same as an empty one.
    pub(crate) key: Option<Vec<u8>>,
    /// The value; `None` is a tombstone.
    pub(crate) value: Option<Vec<u8>>,
    /// Headers in their order; the same name may come twice.
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    /// A record with a key and a value.
    pub(crate) fn new(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self { key: Some(key.into()), value: Some(value.into()), ..Self::default() }
    }

    /// A record with a key and no value.
    pub(crate) fn tombstone(key: impl Into<Vec<u8>>) -> Self {
        Self { key: Some(key.into()), ..Self::default() }
    }

    /// A record with a value and no key, as an access log is often produced.
    pub(crate) fn event(value: impl Into<Vec<u8>>) -> Self {
        Self { value: Some(value.into()), ..Self::default() }
    }

    /// The same with one more header.
    #[must_use]
    pub(crate) fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.to_owned(), Some(value.into())));
        self
    }

    /// The same for one partition.
    #[must_use]
    pub(crate) fn to(mut self, partition: i32) -> Self {
        self.partition = Some(partition);
        self
    }

    /// The same at a time, in milliseconds since 1970.
    #[must_use]
    pub(crate) fn at(mut self, time_ms: i64) -> Self {
        self.time_ms = Some(time_ms);
        self
    }

    /// The first value of a header, as text where it is UTF-8.
    pub(crate) fn header_text(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(given, _)| given == name)?;
        std::str::from_utf8(value.as_deref()?).ok()
    }

    /// The same without what only the broker knows: where and when it lies. For comparing what was sent with what was read.
    #[must_use]
    pub(crate) fn content(&self) -> Self {
        Self { partition: None, offset: None, time_ms: None, ..self.clone() }
    }
}
