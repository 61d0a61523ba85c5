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

/// A chart with a caption.
#[must_use]
pub fn figure(figure: &Figure, caption: &str) -> String {
    format!(
        "<figure>\n<div class=\"chart\" tabindex=\"0\">\n{}</div>\n<figcaption>{}</figcaption>\n</figure>\n",
        figure.svg(),
        xml(caption)
    )
}
