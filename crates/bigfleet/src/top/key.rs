//! The keys that mean something, apart from how a terminal sends them.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    /// To the next part of the screen.
    Tab,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-C.
    Interrupt,
    Char(char),
}

impl Key {
    /// What a terminal sent, if it means anything to us. A key that is let go does not.
    pub(crate) fn read(event: KeyEvent) -> Option<Self> {
        if event.kind == KeyEventKind::Release {
            return None;
        }
        let control = event.modifiers.contains(KeyModifiers::CONTROL);
        match event.code {
            KeyCode::Char('c' | 'C') if control => Some(Self::Interrupt),
            KeyCode::Char('d') if control => Some(Self::PageDown),
            KeyCode::Char('u') if control => Some(Self::PageUp),
            KeyCode::Char(_) if control || event.modifiers.contains(KeyModifiers::ALT) => None,
            KeyCode::Char(letter) => Some(Self::Char(letter)),
            KeyCode::Up => Some(Self::Up),
            KeyCode::Down => Some(Self::Down),
            KeyCode::PageUp => Some(Self::PageUp),
            KeyCode::PageDown => Some(Self::PageDown),
            KeyCode::Home => Some(Self::Home),
            KeyCode::End => Some(Self::End),
            KeyCode::Tab => Some(Self::Tab),
            KeyCode::Enter | KeyCode::Right => Some(Self::Enter),
            KeyCode::Esc | KeyCode::Left => Some(Self::Escape),
            KeyCode::Backspace => Some(Self::Backspace),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_keys() {
        let read = |code, modifiers| Key::read(KeyEvent::new(code, modifiers));
        assert_eq!(read(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(read(KeyCode::Char('c'), KeyModifiers::NONE), Some(Key::Char('c')));
        assert_eq!(read(KeyCode::Char('G'), KeyModifiers::SHIFT), Some(Key::Char('G')));
        assert_eq!(read(KeyCode::Char('x'), KeyModifiers::ALT), None);
        assert_eq!(read(KeyCode::Right, KeyModifiers::NONE), Some(Key::Enter));
        assert_eq!(read(KeyCode::F(1), KeyModifiers::NONE), None);
        let released = KeyEvent::new_with_kind(KeyCode::Enter, KeyModifiers::NONE, KeyEventKind::Release);
        assert_eq!(Key::read(released), None);
    }
}
