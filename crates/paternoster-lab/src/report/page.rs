//! The page as one file: the frame with styles, scripts and data put in their places.

use serde::Serialize;

const FRAME: &str = include_str!("../../report/page.html");
const STYLES: [&str; 2] =
    [include_str!("../../report/uPlot.min.css"), include_str!("../../report/page.css")];
const UPLOT: [&str; 3] = [
    "/*\n",
    include_str!("../../report/uPlot.LICENSE"),
    concat!("\n*/\n", include_str!("../../report/uPlot.iife.min.js")),
];
const SCRIPTS: [&str; 6] = [
    include_str!("../../report/base.js"),
    include_str!("../../report/charts.js"),
    include_str!("../../report/run.js"),
    include_str!("../../report/timeline.js"),
    include_str!("../../report/study.js"),
    include_str!("../../report/main.js"),
];

/// What makes the pages.
pub(super) const MADE_BY: &str = concat!("paternoster ", env!("CARGO_PKG_VERSION"));

/// Returns the page of that title with the data that its scripts show.
pub(super) fn page(title: &str, data: &impl Serialize) -> String {
    let data = serde_json::to_string(data).expect("a report is plain numbers and texts");
    let mut page = String::new();
    let mut rest = FRAME;
    let parts: [(&str, String); 5] = [
        ("@TITLE@", as_text(title)),
        ("@STYLES@", STYLES.concat()),
        ("@DATA@", within_script(&data)),
        ("@UPLOT@", UPLOT.concat()),
        ("@SCRIPTS@", SCRIPTS.concat()),
    ];
    for (place, part) in parts {
        let (before, after) = rest.split_once(place).expect("the frame has its places in order");
        page.extend([before, &part]);
        rest = after;
    }
    page + rest
}

/// The text with nothing in it that HTML reads as more than text.
fn as_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The JSON with nothing in it that could end or open an element; in a text of JSON the escaped
/// character is the same.
fn within_script(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_like_html_stay_texts() {
        let evil = "</script><script>alert(1)</script><!-- & @DATA@ @SCRIPTS@";
        let page = page(evil, &[evil]);
        assert_eq!(page.matches("<script>").count(), 2, "the page's own scripts");
        assert!(!page.contains("alert(1)<"), "it stands between escaped brackets alone");
        let (_, rest) = page.split_once("id=\"data\">").expect("the data are there");
        let (json, _) = rest.split_once("</script>").expect("their element ends");
        let read: Vec<String> = serde_json::from_str(json).expect("they are JSON");
        assert_eq!(read, [evil]);
    }

    #[test]
    fn page_refers_to_nothing_outside_itself() {
        let page = page("a", &[""; 0]);
        for reference in [" src=", "@import", "url(http", "<link", "fetch(", "XMLHttpRequest"] {
            assert!(!page.contains(reference), "{reference}");
        }
        let addresses: Vec<_> = page.match_indices("://").map(|(at, _)| at).collect();
        let own = page.find("https://github.com/leeoniya/uPlot").expect("the notice of uPlot");
        assert_eq!(addresses, [own + "https".len()]);
    }
}
