//! `cargo xtask docs`: the guide (`docs/`) as HTML and as PDF.
//!
//! ```text
//!   docs/*  ──copy──▶  target/guide/        mdbook ──▶ html/      chromium ──▶ paternoster.pdf
//!   what pages link    target/guide/files/
//!   to elsewhere ────▶ … .txt
//! ```
//!
//! A page may link to a file of the repository outside of `docs/`. The book has a copy of that file
//! as text, so that it can be read, or published, without the repository. What is not installed is
//! named with the command that installs it, and the exit status is 2.

use crate::cargo;
use anyhow::{Context, Result, bail};
use paternoster_bench::NotRun;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// How mdBook is installed.
const INSTALL_MDBOOK: &str = "cargo install mdbook --locked";
/// How chromium is installed on Debian.
const INSTALL_CHROMIUM: &str = "apt-get install --no-install-recommends chromium";
/// Where the book has the files that are linked to, from its root.
const FILES: &str = "files";

/// Runs the command.
pub(crate) fn run() -> Result<()> {
    let book = std::path::absolute(cargo::target_dir().join("guide"))?;
    let html = book.join("html");
    copy(Path::new(""), &book).context("copying docs/")?;
    require("mdbook", INSTALL_MDBOOK)?;
    cargo::run(Command::new("mdbook").arg("build").arg(&book))?;
    println!("docs: {}", html.join("index.html").display());
    require("chromium", INSTALL_CHROMIUM)?;
    let pdf = book.join("paternoster.pdf");
    print(&html, &pdf)?;
    println!("docs: {}", pdf.display());
    Ok(())
}

/// Makes `book` from the pages of the repository, with the files that they link to elsewhere.
fn copy(repository: &Path, book: &Path) -> Result<()> {
    if book.exists() {
        fs::remove_dir_all(book)?;
    }
    fs::create_dir_all(book)?;
    let mut linked = BTreeSet::new();
    for entry in fs::read_dir(repository.join("docs"))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let name = path.file_name().context("a file has a name")?;
        let is_page = path.extension().is_some_and(|extension| extension == "md");
        let text = if is_page { with_links_inside(&text, &mut linked) } else { text };
        fs::write(book.join(name), text)?;
    }
    for path in linked {
        let copied = book.join(copied_as(&path));
        fs::create_dir_all(copied.parent().context("it is in a folder")?)?;
        fs::copy(repository.join(&path), copied)
            .with_context(|| format!("copying {path}, which a page links to"))?;
    }
    Ok(())
}

/// A page whose links out of its folder lead to the book's copies, which `linked` collects by their
/// paths from the root of the repository. Text has no headings: what follows a `#` is left out.
fn with_links_inside(page: &str, linked: &mut BTreeSet<String>) -> String {
    let mut pieces = page.split("](../");
    let mut made = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (target, rest) = piece.split_once(')').unwrap_or((piece, ""));
        let path = target.split('#').next().unwrap_or(target);
        made.extend(["](", &copied_as(path), ")", rest]);
        linked.insert(path.to_owned());
    }
    made
}

/// Where the book has the copy of a file: mdBook takes whatever has `.md` in its name for a page.
fn copied_as(path: &str) -> String {
    format!("{FILES}/{}.txt", path.replace(".md", "-md"))
}

/// Refuses to go on where `program` does not start.
fn require(program: &str, install: &str) -> Result<()> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    if !output.is_ok_and(|output| output.status.success()) {
        bail!(NotRun(format!("{program} is not installed: {install}")));
    }
    Ok(())
}

/// Prints the page on which mdBook has the whole book.
fn print(html: &Path, pdf: &Path) -> Result<()> {
    let profile = tempfile::tempdir()?;
    let mut chromium = Command::new("chromium");
    chromium.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]);
    chromium.arg(format!("--user-data-dir={}", profile.path().display()));
    chromium.arg(format!("--print-to-pdf={}", pdf.display()));
    chromium.arg(format!("file://{}", html.join("print.html").display()));
    let output = chromium.output().context("chromium does not start")?;
    if !output.status.success() || !pdf.exists() {
        bail!("chromium printed nothing: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_out_of_the_guide_lead_to_copies_in_the_book() {
        let page = "[a](b.md#c), [d](../e/f.rs) and\n[g](../h.md#i) [j](https://k.l/../m)";
        let mut linked = BTreeSet::new();
        let made = with_links_inside(page, &mut linked);
        let expected =
            "[a](b.md#c), [d](files/e/f.rs.txt) and\n[g](files/h-md.txt) [j](https://k.l/../m)";
        assert_eq!(made, expected);
        assert_eq!(linked.into_iter().collect::<Vec<_>>(), ["e/f.rs", "h.md"]);
    }

    #[test]
    fn book_has_the_pages_and_the_files_that_they_link_to() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let book = tempfile::tempdir().expect("a directory");
        copy(&repository, book.path()).expect("every link leads to a file");
        for file in ["SUMMARY.md", "book.toml", "serving.md", "files/oracle/FORMAT-md.txt"] {
            assert!(book.path().join(file).exists(), "{file}");
        }
    }
}
