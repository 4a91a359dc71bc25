//! Whether a file goes past the page cache, and how that is known.

/// What was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheChoice {
    /// Past the page cache, where the file system or device takes that.
    #[default]
    Auto,
    /// Past the page cache.
    Direct,
    /// Through the page cache.
    Page,
}

impl CacheChoice {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Direct => "direct",
            Self::Page => "page",
        }
    }
}

/// How a disk goes past the page cache, or through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Whether it is opened for direct I/O.
    pub direct: bool,
    /// Whether weights bind all of the I/O of the device behind: not where the kernel caches, or
    /// writes back on its own.
    pub binds: bool,
    /// How that is known, as a sentence.
    pub because: String,
}

impl Cache {
    /// Its name in configurations and statistics.
    pub const fn name(&self) -> &'static str {
        if self.direct { "direct" } else { "page" }
    }
}
