//! A self-contained HTML page. It works without scripts, which are needed only to sort the tables.

pub use crate::figure::xml;

use crate::figure::Figure;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A page with this title. `body` is HTML.
#[must_use]
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         {body}</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n",
        xml(title)
    )
}

/// A chart with a caption. `narrow` is the chart for narrow windows, if it has another shape there.
#[must_use]
pub fn figure(wide: &Figure, narrow: Option<&Figure>, caption: &str) -> String {
    let class = if narrow.is_some() { " class=\"shapes\"" } else { "" };
    let mut html = format!("<figure{class}>\n<div class=\"chart\" tabindex=\"0\">\n{}</div>\n", wide.svg());
    if let Some(narrow) = narrow {
        html.push_str(&format!("<div class=\"chart narrow\">\n{}</div>\n", narrow.svg()));
    }
    if !caption.is_empty() {
        html.push_str(&format!("<figcaption>{}</figcaption>\n", xml(caption)));
    }
    html + "</figure>\n"
}

/// A part of the page that is collapsed until a reader opens it or prints the page. `body` is HTML.
#[must_use]
pub fn details(heading: &str, body: &str) -> String {
    format!("<details>\n<summary><h2>{}</h2></summary>\n{body}</details>\n", xml(heading))
}
