//! The few colours: what is wrong, what waits, what is aside.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

/// What a piece of text means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// A heading.
    Head,
    /// All is well.
    Good,
    /// It waits, or somebody should look.
    Warn,
    /// It is wrong.
    Bad,
    /// Aside.
    Dim,
}

/// Whether colours are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// They are not.
    Plain,
    /// As terminals understand them.
    Ansi,
}

impl Paint {
    /// The text with the colours of its tone.
    pub fn apply(self, tone: Tone, text: &str) -> String {
        let style = match (self, tone) {
            (Self::Plain, _) | (_, Tone::Plain) => return text.to_owned(),
            (_, Tone::Head) => Style::new().bold(),
            (_, Tone::Good) => AnsiColor::Green.on_default(),
            (_, Tone::Warn) => AnsiColor::Yellow.on_default(),
            (_, Tone::Bad) => AnsiColor::Red.on_default().bold(),
            (_, Tone::Dim) => Style::new().dimmed(),
        };
        format!("{style}{text}{style:#}")
    }
}
