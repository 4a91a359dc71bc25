//! The exports that a server offers, and the trait that finds them by name.

use crate::proto::{MAX_PAYLOAD, TransmissionFlags};

/// An export as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportInfo {
    /// The name it is listed under, at most [`MAX_STRING`](crate::proto::MAX_STRING) bytes.
    pub name: String,
    /// A text for people.
    pub description: Option<String>,
    /// Bytes.
    pub size: u64,
    /// What it can do. What depends on the session (`SEND_DF`) is corrected by the machines.
    pub flags: TransmissionFlags,
    /// Which sizes of requests it takes.
    pub block_size: BlockSize,
}

/// Sizes of requests, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSize {
    /// Offsets and lengths must be multiples of it; a power of two.
    pub min: u32,
    /// Multiples of it are served best; a power of two.
    pub preferred: u32,
    /// Most bytes of a `READ` or `WRITE`; a value above [`MAX_PAYLOAD`] counts as that.
    pub max: u32,
}

impl Default for BlockSize {
    /// Any alignment, 4096 preferred, 32 MiB at most: what clients assume that do not ask.
    fn default() -> Self {
        Self { min: 1, preferred: 4096, max: MAX_PAYLOAD }
    }
}

/// Finds exports by name. Asked during the handshake only.
pub trait Exports {
    /// The names a client may see, for `LIST`.
    fn names(&self) -> Vec<String>;

    /// The export a client means by `name`; the empty name is the default export, if there is one.
    fn find(&self, name: &str) -> Option<ExportInfo>;

    /// Returns whether a client may enter that export now, which is there; else why not, in a
    /// sentence.
    fn may_enter(&self, name: &str) -> Result<(), String> {
        let _ = name;
        Ok(())
    }
}

/// Several exports in order; the first is the default one.
impl Exports for Vec<ExportInfo> {
    fn names(&self) -> Vec<String> {
        self.iter().map(|export| export.name.clone()).collect()
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        let named = self.iter().find(|export| export.name == name);
        named.or_else(|| self.first().filter(|_| name.is_empty())).cloned()
    }
}

/// One export, which is also the default one.
impl Exports for ExportInfo {
    fn names(&self) -> Vec<String> {
        vec![self.name.clone()]
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        (name.is_empty() || name == self.name).then(|| self.clone())
    }
}
