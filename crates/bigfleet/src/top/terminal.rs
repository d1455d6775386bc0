//! The real terminal, taken over and given back whatever happens.

use std::io::{self, IsTerminal};

use ratatui::{DefaultTerminal, Frame};

/// Whether there is one to read keys from and to draw on.
pub(crate) fn is_there() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// The terminal while the view has it. Dropping it gives it back; a panic does so first, before its message is printed.
pub(super) struct Taken(DefaultTerminal);

impl Taken {
    /// Takes it over.
    pub(super) fn take() -> io::Result<Self> {
        let taken = ratatui::try_init();
        if taken.is_err() {
            // It may be half taken.
            ratatui::restore();
        }
        taken.map(Self)
    }

    /// Puts a picture on it.
    pub(super) fn draw(&mut self, picture: impl FnOnce(&mut Frame)) -> io::Result<()> {
        self.0.draw(picture).map(drop)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        ratatui::restore();
    }
}
