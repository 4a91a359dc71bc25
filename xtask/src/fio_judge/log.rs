//! A log of I/O, version 3: what `write_iolog` has.

use anyhow::{Context, Result, ensure};

/// What an entry does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    Read,
    Write,
    Trim,
    Sync,
    DataSync,
}

/// An I/O that was issued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) file: String,
    pub(super) action: Action,
    /// Both 0 of a sync.
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// The I/Os of a log, in their order.
pub(super) fn read(text: &str) -> Result<Vec<Entry>> {
    let mut lines = text.lines();
    let first = lines.next().context("an empty log")?;
    ensure!(first == "fio version 3 iolog", "{first:?} is no log of version 3");
    let entries = lines.filter_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let &[_, file, action, offset, bytes] = words.as_slice() else { return None };
        let action = match action {
            "read" => Action::Read,
            "write" => Action::Write,
            "trim" => Action::Trim,
            "sync" => Action::Sync,
            "datasync" => Action::DataSync,
            _ => return None,
        };
        Some(entry(file, action, offset, bytes).with_context(|| line.to_owned()))
    });
    entries.collect()
}

fn entry(file: &str, action: Action, offset: &str, bytes: &str) -> Result<Entry> {
    // fio's syncs have the offset of the I/O before them.
    let is_sync = matches!(action, Action::Sync | Action::DataSync);
    Ok(Entry {
        file: file.to_owned(),
        action,
        offset: if is_sync { 0 } else { offset.parse()? },
        bytes: if is_sync { 0 } else { bytes.parse()? },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_io_are_left_out() {
        let text = "fio version 3 iolog\n0 a.0.0 add\n1 a.0.0 open\n7 a.0.0 write 4096 512\n\
                    8 a.0.0 sync 4096 0\n9 a.0.0 close\n";
        let entry = |action, offset, bytes| {
            let file = "a.0.0".to_owned();
            Entry { file, action, offset, bytes }
        };
        let wanted = [entry(Action::Write, 4096, 512), entry(Action::Sync, 0, 0)];
        assert_eq!(read(text).expect("a log"), wanted);
        assert!(read("fio version 2 iolog\n").is_err());
    }
}
