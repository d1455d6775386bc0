//! How inputs change the model. Nothing is done here: what is to be done is returned.

use super::command::Command;
use super::key::Key;
use super::model::{Message, Model, Order, Typed, Typing};
use super::pages::page;
use super::screen::Screen;

/// Stops a page key moves by.
const PAGE: usize = 10;

/// The longest filter or command that can be typed.
const TYPED_CHARS: usize = 200;

/// What happened.
#[derive(Clone, Debug)]
pub(crate) enum Input {
    Key(Key),
    Message(Message),
    /// Nothing; time has passed.
    Tick,
}

impl Model {
    /// Takes in what happened at `now` and says what is to be done.
    pub(crate) fn update(&mut self, now_unix_nanos: i64, input: Input) -> Vec<Order> {
        self.now_unix_nanos = now_unix_nanos;
        if matches!(input, Input::Key(_)) {
            self.told = None;
        }
        let mut orders = Vec::new();
        match input {
            Input::Key(Key::Interrupt) => return vec![Order::Quit],
            Input::Key(key) if self.typing.is_some() => match self.type_on(key) {
                Some(Order::Quit) => return vec![Order::Quit],
                order => orders.extend(order),
            },
            Input::Key(Key::Char('q')) => return vec![Order::Quit],
            Input::Key(key) => self.press(key),
            Input::Message(message) => self.take(message),
            Input::Tick => {}
        }
        orders.extend(self.due().map(Order::Ask));
        orders
    }

    fn press(&mut self, key: Key) {
        match key {
            Key::Up | Key::Char('k') => self.move_to(|at, _| at.saturating_sub(1)),
            Key::Down | Key::Char('j') => self.move_to(|at, _| at + 1),
            Key::PageUp => self.move_to(|at, _| at.saturating_sub(PAGE)),
            Key::PageDown | Key::Char(' ') => self.move_to(|at, _| at + PAGE),
            Key::Home | Key::Char('g') => self.move_to(|_, _| 0),
            Key::End | Key::Char('G') => self.move_to(|_, last| last),
            Key::Tab => self.next_pane(),
            Key::Enter | Key::Char('l') => self.enter(),
            Key::Escape | Key::Backspace | Key::Char('h') => self.back(),
            Key::Char('?') => self.open(Screen::Help),
            Key::Char('/') if self.place().screen.filters() => {
                self.typing = Some(Typing { what: Typed::Filter, text: self.place().filter.clone() });
            }
            Key::Char(':') => self.typing = Some(Typing { what: Typed::Command, text: String::new() }),
            Key::Char('p') => {
                let cluster = self.cluster_here().map(|name| format!("{name} ")).unwrap_or_default();
                let text = format!("pause {cluster}for 30m because ");
                self.typing = Some(Typing { what: Typed::Command, text });
            }
            Key::Char('s') => {
                let sorts = self.place().screen.sorts().len().max(1);
                let place = self.place_mut();
                place.sort = (place.sort + 1) % sorts;
            }
            Key::Char('r') => {
                let place = self.place_mut();
                place.reversed = !place.reversed;
            }
            Key::Char(digit @ '1'..='4') => {
                self.tab = digit as usize - '1' as usize;
                self.opened.clear();
            }
            Key::Char(_) | Key::Interrupt => {}
        }
    }

    /// Where the cursor is, among the stops of the page.
    pub(crate) fn cursor(&self, stops: &[super::page::Stop]) -> usize {
        let place = self.place();
        let kept = place.key.as_ref().and_then(|key| stops.iter().position(|stop| stop.key == *key));
        kept.unwrap_or_else(|| place.cursor.min(stops.len().saturating_sub(1)))
    }

    /// Moves to what `to` makes of the present stop and the last one.
    fn move_to(&mut self, to: impl FnOnce(usize, usize) -> usize) {
        let stops = page(self).stops();
        let last = stops.len().saturating_sub(1);
        let at = to(self.cursor(&stops), last).min(last);
        let key = if at == 0 { None } else { stops.get(at).map(|stop| stop.key.clone()) };
        let place = self.place_mut();
        (place.cursor, place.key) = (at, key);
    }

    fn next_pane(&mut self) {
        let stops = page(self).stops();
        let here = stops.get(self.cursor(&stops)).map(|stop| stop.pane);
        let next = stops.iter().position(|stop| Some(stop.pane) > here);
        self.move_to(|_, _| next.unwrap_or(0));
    }

    fn enter(&mut self) {
        let stops = page(self).stops();
        let stop = stops.get(self.cursor(&stops)).cloned();
        if let Some(screen) = stop.and_then(|stop| stop.opens) {
            self.open(screen);
        }
    }

    /// Out of what was opened; then out of the filter; then to the first screen.
    fn back(&mut self) {
        if self.opened.pop().is_some() {
            return;
        }
        if self.tabs[self.tab].filter.is_empty() {
            self.tab = 0;
        } else {
            self.tabs[self.tab].filter.clear();
        }
    }

    /// The cluster the reader looks at: the one that is open, or the one the cursor is on.
    fn cluster_here(&self) -> Option<String> {
        let stops = page(self).stops();
        let here = stops.get(self.cursor(&stops)).and_then(|stop| stop.opens.clone());
        match (&self.place().screen, here) {
            (Screen::Cluster(name), _) => Some(name.clone()),
            (_, Some(Screen::Cluster(name))) => Some(name),
            _ => None,
        }
    }

    fn type_on(&mut self, key: Key) -> Option<Order> {
        let mut typing = self.typing.take()?;
        match key {
            Key::Escape => return None,
            Key::Enter => return self.typed(&typing),
            // Beyond the beginning there is nothing to delete: that leaves.
            Key::Backspace if typing.text.pop().is_none() => return None,
            Key::Char(letter) if typing.text.chars().count() < TYPED_CHARS => typing.text.push(letter),
            _ => {}
        }
        self.typing = Some(typing);
        None
    }

    /// Does what was typed.
    fn typed(&mut self, typing: &Typing) -> Option<Order> {
        if typing.what == Typed::Filter {
            let place = self.place_mut();
            (place.filter, place.cursor, place.key) = (typing.text.trim().to_owned(), 0, None);
            return None;
        }
        match Command::read(&typing.text) {
            Ok(Command::Quit) => return Some(Order::Quit),
            Ok(Command::Tell(deed)) => return Some(Order::Tell(deed)),
            Ok(Command::Tab(tab)) => {
                self.tab = tab;
                self.opened.clear();
            }
            Ok(Command::Open(screen)) => self.open(screen),
            Err(wrong) => {
                // What was typed is not lost: it can be mended.
                self.typing = Some(typing.clone());
                self.told = Some(Err(wrong));
            }
        }
        None
    }
}
