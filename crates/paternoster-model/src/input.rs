//! Files that are read whole: job files, files of parameters, scenarios, tasks.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// The most bytes that such a file may have; real ones have far less.
const MOST: u64 = 64 << 20;

/// Reads a file whole, or a pipe to its end. More than 64 MiB are an error, so that one that never
/// ends, as `/dev/zero`, does not fill the memory.
pub fn read_input(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST {
        let what = format!("it has more than {} MiB, the most that is read", MOST >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// The same of a file that is text.
pub fn read_input_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_input(path)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "no UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_without_an_end_is_refused() {
        let error = read_input(Path::new("/dev/zero")).expect_err("it never ends");
        assert_eq!(error.to_string(), "it has more than 64 MiB, the most that is read");
    }

    #[test]
    fn greatest_file_is_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(MOST).expect("a length");
        assert_eq!(read_input(file.path()).expect("it is not too large").len() as u64, MOST);
        file.as_file().set_len(MOST + 1).expect("a length");
        assert!(read_input(file.path()).is_err());
    }
}
