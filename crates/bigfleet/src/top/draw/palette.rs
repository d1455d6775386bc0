//! What meanings look like.

use ratatui::style::{Color, Modifier, Style};

use crate::output::Tone;

/// Where the cursor is, with and without colours.
pub(super) const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);

/// With colours, or with weight alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    pub(super) coloured: bool,
}

impl Palette {
    /// The style of a tone. Only the terminal's own first colours are used: its theme makes them readable.
    pub(super) fn style(self, tone: Tone) -> Style {
        let style = Style::new();
        match (tone, self.coloured) {
            (Tone::Plain, _) | (Tone::Good, false) => style,
            (Tone::Head, _) | (Tone::Warn, false) => style.add_modifier(Modifier::BOLD),
            (Tone::Dim, _) => style.add_modifier(Modifier::DIM),
            (Tone::Good, true) => style.fg(Color::Green),
            (Tone::Warn, true) => style.fg(Color::Yellow),
            (Tone::Bad, true) => style.fg(Color::Red).add_modifier(Modifier::BOLD),
            (Tone::Bad, false) => style.add_modifier(Modifier::BOLD | Modifier::UNDERLINED),
        }
    }
}
