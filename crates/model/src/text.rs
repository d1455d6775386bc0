//! How foreign text appears in our messages: escaped and bounded.
//!
//! Every error names the object it is about, and that name came from outside. A megabyte of it, or a
//! terminal escape in it, must not travel into a log line.

use std::fmt;

/// The longest piece of foreign text a message repeats, in characters.
pub const SHOWN_CHARS: usize = 80;

/// Displays `0` in double quotes, escaped, cut after [`SHOWN_CHARS`] characters.
///
/// ```
/// use bigfleet_model::text::Quoted;
/// assert_eq!(Quoted("a\u{0}b").to_string(), r#""a\0b""#);
/// assert!(Quoted(&"x".repeat(1000)).to_string().ends_with("…\" (1000 bytes)"));
/// ```
#[derive(Clone, Copy)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cut = self.0.char_indices().nth(SHOWN_CHARS).map(|(at, _)| at);
        let shown = &self.0[..cut.unwrap_or(self.0.len())];
        write!(f, "\"{}", shown.escape_debug())?;
        match cut {
            Some(_) => write!(f, "…\" ({} bytes)", self.0.len()),
            None => f.write_str("\""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_escaped_and_cut() {
        for (text, shown) in [
            ("", r#""""#),
            ("plain", r#""plain""#),
            ("a\"b", r#""a\"b""#),
            ("\u{1b}[31m", r#""\u{1b}[31m""#),
            ("\n\t\0", r#""\n\t\0""#),
            ("é", r#""é""#),
        ] {
            assert_eq!(Quoted(text).to_string(), shown);
        }
        let at_the_limit = "é".repeat(SHOWN_CHARS);
        assert_eq!(Quoted(&at_the_limit).to_string(), format!("\"{at_the_limit}\""));
        let above = "é".repeat(SHOWN_CHARS + 1);
        assert_eq!(Quoted(&above).to_string(), format!("\"{at_the_limit}…\" (162 bytes)"));
    }
}
