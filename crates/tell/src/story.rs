//! A short text of a heading and labelled paragraphs, wrapped so that it reads well:
//!
//! ```text
//! heading sentence
//!   label       text that goes on
//!               here
//! ```

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use unicode_width::UnicodeWidthStr;

use super::style::{Paint, Tone};
use super::{safe, safe_lines};

/// Columns before the text of a paragraph.
const INDENT: usize = 15;

/// A text being put together. As data it is the list of its parts.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Story {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(tag = "part", rename_all = "lowercase")]
enum Part {
    Heading {
        text: String,
        tone: Tone,
    },
    Said {
        label: &'static str,
        text: String,
        tone: Tone,
    },
    /// Rows that line up, the numbers of the `right` columns at the right.
    Columns {
        label: &'static str,
        rows: Vec<Vec<String>>,
        right: Vec<usize>,
    },
}

impl Story {
    /// A sentence over the whole width.
    pub fn heading(&mut self, text: impl Into<String>, tone: Tone) -> &mut Self {
        self.parts.push(Part::Heading { text: safe_lines(text), tone });
        self
    }

    /// A labelled paragraph; nothing if the text is empty. The label of the paragraph before is not repeated.
    pub fn say(&mut self, label: &'static str, text: impl Into<String>) -> &mut Self {
        self.say_toned(label, text, Tone::Plain)
    }

    /// The same with a colour.
    pub fn say_toned(&mut self, label: &'static str, text: impl Into<String>, tone: Tone) -> &mut Self {
        let text = safe_lines(text);
        if !text.is_empty() {
            self.parts.push(Part::Said { label, text, tone });
        }
        self
    }

    /// Lines up rows in columns, the numbers of `right` columns at the right; nothing if there are no rows.
    pub fn columns(&mut self, label: &'static str, rows: &[Vec<String>], right: &[usize]) -> &mut Self {
        let escape = |row: &Vec<String>| row.iter().map(|text| safe(text.as_str())).collect::<Vec<_>>();
        if !rows.is_empty() {
            let rows = rows.iter().map(escape).collect();
            self.parts.push(Part::Columns { label, rows, right: right.to_vec() });
        }
        self
    }

    /// Goes on with another text.
    pub fn append(&mut self, mut other: Self) -> &mut Self {
        self.parts.append(&mut other.parts);
        self
    }

    /// Writes it for a width.
    pub fn write(&self, out: &mut impl Write, width: usize, paint: Paint) -> io::Result<()> {
        let mut before = "";
        for part in &self.parts {
            match part {
                Part::Heading { text, tone } => {
                    for line in wrap(text, width) {
                        writeln!(out, "{}", paint.apply(*tone, &line))?;
                    }
                    before = "";
                }
                Part::Said { label, text, tone } => {
                    let lines = wrap(text, width.saturating_sub(INDENT).max(20));
                    let lines: Vec<String> = lines.iter().map(|line| paint.apply(*tone, line)).collect();
                    labelled(out, label, before, &lines, paint)?;
                    before = label;
                }
                Part::Columns { label, rows, right } => {
                    labelled(out, label, before, &lined_up(rows, right), paint)?;
                    before = label;
                }
            }
        }
        Ok(())
    }
}

/// Rows as lines of equal columns.
fn lined_up(rows: &[Vec<String>], right: &[usize]) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|text| text.width()).max();
    let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (column, text) in row.iter().enumerate() {
            let blanks = " ".repeat(widths[column].saturating_sub(text.width()));
            let (before, after) = if right.contains(&column) { (&*blanks, "") } else { ("", &*blanks) };
            let _ = write!(line, "{before}{text}{after}  ");
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn labelled(
    out: &mut impl Write,
    label: &str,
    before: &str,
    lines: &[String],
    paint: Paint,
) -> io::Result<()> {
    for (number, line) in lines.iter().enumerate() {
        let label = if number == 0 && label != before { label } else { "" };
        let blanks = " ".repeat((INDENT - 2).saturating_sub(label.width()).max(1));
        writeln!(out, "  {}{blanks}{line}", paint.apply(Tone::Dim, label))?;
    }
    Ok(())
}

/// Breaks a text at blanks; a word that is too long has a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            if !line.is_empty() && line.width() + 1 + word.width() > width {
                lines.push(std::mem::take(&mut line).trim_end().to_owned());
            }
            if !line.is_empty() {
                line.push(' ');
            }
            // Two blanks are a pause in the middle of a line, and nothing at its beginning.
            line.push_str(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_at_the_end_of_a_line_is_dropped() {
        assert_eq!(wrap("one two.  (three)", 9), ["one two.", "(three)"]);
        assert_eq!(wrap("one  two", 9), ["one  two"]);
    }

    #[test]
    fn paragraphs_hang_behind_their_label() {
        let mut story = Story::default();
        story
            .heading("a need waits", Tone::Plain)
            .say("why not", "one two three four five six seven")
            .say("empty", "");
        story.say("why not", "again").columns(
            "best",
            &[vec!["a".into(), "10".into()], vec!["bb".into(), "9".into()]],
            &[1],
        );
        let mut out = Vec::new();
        story.write(&mut out, 40, Paint::Plain).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "a need waits\n  why not      one two three four five\n               six seven\n               again\n  best         a   10\n               bb   9\n"
        );
    }
}
