//! How foreign text appears in our messages: escaped and bounded.
//!
//! Every error names the object it is about, and that name came from outside. A megabyte of it, or a
//! terminal escape in it, must not travel into a log line.

use std::borrow::Cow;
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

/// Whether a character does something to a terminal other than show itself: control characters, and those that hide or
/// turn round what stands beside them.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// A text from outside as a terminal or a log may have it: nothing in it but what can be seen. The rest is escaped, so
/// that two different texts still look different. Everything that is shown to people goes through here.
///
/// ```
/// use bigfleet_model::text::shown;
/// assert_eq!(shown("gpu-é"), "gpu-é");
/// assert_eq!(shown("\u{1b}[2Jgone\u{202e}"), r"\u{1b}[2Jgone\u{202e}");
/// ```
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            letter if is_hidden(letter) => shown.extend(letter.escape_unicode()),
            letter => shown.push(letter),
        }
    }
    shown.into()
}

/// As [`shown`], for a text of several lines of ours.
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    if !text.contains('\n') {
        return shown(text);
    }
    text.split('\n').map(shown).collect::<Vec<_>>().join("\n").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_escaped_and_the_rest_stays() {
        for (text, safe) in [
            ("", ""),
            ("a 'b' \"c\" \\d é 日本", "a 'b' \"c\" \\d é 日本"),
            ("\u{1b}]0;x\u{7}", r"\u{1b}]0;x\u{7}"),
            ("\u{9b}31m", r"\u{9b}31m"),
            ("a\u{202e}b\u{2066}", r"a\u{202e}b\u{2066}"),
            ("a\nb\tc\r", r"a\nb\tc\r"),
            ("\u{200b}\u{feff}\u{7f}", r"\u{200b}\u{feff}\u{7f}"),
        ] {
            assert_eq!(shown(text), safe);
            assert!(!shown(text).contains(is_hidden));
        }
        assert_eq!(shown_lines("a\nb\u{1b}"), "a\nb\\u{1b}");
    }

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
