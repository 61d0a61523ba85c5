//! Upper bounds for text widths in common sans-serif fonts, because the font of an SVG is unknown.

/// The width of a character in hundredths of the font size, in the widest of the common sans-serif fonts.
fn hundredths(c: char) -> u32 {
    match c {
        'i' | 'j' | 'l' | '\'' | ' ' | '.' | ',' | ':' | ';' | '!' => 34,
        'I' | 'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '/' | '\\' | '-' | '`' | '"' => 44,
        'J' | 's' | 'c' | 'z' | 'k' | 'v' | 'x' | 'y' | '*' | '?' | '_' | '^' => 61,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 100,
        'A'..='Z' | '&' | '#' => 80,
        '+' | '=' | '<' | '>' | '~' => 84,
        ' '..='\u{2fff}' => 65,
        // Characters of other scripts can be as wide as they are tall.
        _ => 100,
    }
}

/// An upper bound for the width of the text at this font size.
pub fn text_width(text: &str, size: f64, bold: bool) -> f64 {
    let all: u32 = text.chars().map(hundredths).sum();
    let heavier = if bold { 1.1 } else { 1.0 };
    f64::from(all) / 100.0 * size * heavier
}

/// The text cut to this width. An ellipsis marks the cut.
pub fn fit(text: &str, width: f64, size: f64, bold: bool) -> String {
    if text_width(text, size, bold) <= width {
        return text.to_owned();
    }
    let mut cut = text.to_owned();
    while cut.pop().is_some() {
        let shown = format!("{}…", cut.trim_end());
        if text_width(&shown, size, bold) <= width {
            return shown;
        }
    }
    cut
}

/// The text in lines of at most this width, broken at spaces. Longer words are cut.
pub fn wrap(text: &str, width: f64, size: f64, bold: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let longer = lines.last().map(|line| format!("{line} {word}"));
        match longer.filter(|line| text_width(line, size, bold) <= width) {
            Some(longer) => {
                lines.pop();
                lines.push(longer);
            }
            None => lines.push(fit(word, width, size, bold)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut() {
        assert_eq!(fit("great white shark", 90.0, 12.0, false), "great white…");
        assert_eq!(fit("shark", 90.0, 12.0, false), "shark");
        assert_eq!(fit("shark", 1.0, 12.0, false), "");
    }

    #[test]
    fn text_is_wrapped_at_spaces() {
        assert_eq!(wrap("great white shark", 80.0, 12.0, false), ["great white", "shark"]);
        assert_eq!(wrap("a Schwarzkopfschaf", 60.0, 12.0, false), ["a", "Schwar…"]);
        assert!(wrap(" ", 60.0, 12.0, false).is_empty());
    }
}
