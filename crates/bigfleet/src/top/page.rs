//! What a screen shows, before it is known how wide and high it may be.
//!
//! A page is made from the model alone, so that keys can be understood (which row is below this one, what does it
//! open) without drawing. Everything a cursor can rest on is a *stop*.

use crate::output::Tone;

use super::screen::Screen;

/// One screen's content.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) panes: Vec<Pane>,
    pub(crate) form: Form,
}

/// How the panes lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each has a part of the screen and scrolls by itself.
    #[default]
    Panes,
    /// One after the other like a text, scrolled together; every line is a stop.
    Text,
}

/// One titled part.
#[derive(Clone, Debug)]
pub(crate) struct Pane {
    pub(crate) title: String,
    pub(crate) body: Body,
}

/// What a pane holds.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Said(Vec<Said>),
    Table(Table),
    Bars(Vec<Bar>),
}

/// A labelled paragraph.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) label: &'static str,
    pub(crate) text: String,
    pub(crate) tone: Tone,
    pub(crate) opens: Option<Screen>,
}

/// Rows under columns.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) columns: &'static [Column],
    pub(crate) rows: Vec<Row>,
    /// Said in place of rows if there are none.
    pub(crate) empty: &'static str,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) right: bool,
    /// Where there is no room for all, the lowest goes first.
    pub(crate) worth: u8,
    /// Cut below this it says nothing: rather another column goes.
    pub(crate) least: usize,
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The same for the same thing at all times; unique in its page.
    pub(crate) key: String,
    pub(crate) opens: Option<Screen>,
    pub(crate) cells: Vec<Cell>,
}

/// One text with its meaning.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

/// One bar with what it is made of.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) label: String,
    /// Machines that are bound, on the move, idle, broken, and quota.
    pub(crate) parts: [u64; 5],
    pub(crate) text: String,
    pub(crate) figure: String,
}

/// Something a cursor can rest on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stop {
    pub(crate) pane: usize,
    pub(crate) key: String,
    pub(crate) opens: Option<Screen>,
}

impl Page {
    /// Everything a cursor can rest on, from the top.
    pub(crate) fn stops(&self) -> Vec<Stop> {
        let mut stops = Vec::new();
        for (pane, held) in self.panes.iter().enumerate() {
            match &held.body {
                Body::Table(table) => {
                    let stop = |row: &Row| Stop { pane, key: row.key.clone(), opens: row.opens.clone() };
                    stops.extend(table.rows.iter().map(stop));
                }
                Body::Said(said) if self.form == Form::Text => {
                    let stop = |(number, said): (usize, &Said)| Stop {
                        pane,
                        key: format!("{pane}:{number}"),
                        opens: said.opens.clone(),
                    };
                    stops.extend(said.iter().enumerate().map(stop));
                }
                Body::Said(_) | Body::Bars(_) => {}
            }
        }
        stops
    }

    /// How many stops the panes before this one have.
    pub(crate) fn stops_before(&self, pane: usize) -> usize {
        self.panes[..pane].iter().map(|before| before.stops(self.form)).sum()
    }
}

impl Pane {
    /// Named content.
    pub(crate) fn new(title: impl Into<String>, body: Body) -> Self {
        Self { title: title.into(), body }
    }

    /// How many stops it has.
    pub(crate) fn stops(&self, form: Form) -> usize {
        match &self.body {
            Body::Table(table) => table.rows.len(),
            Body::Said(said) if form == Form::Text => said.len(),
            Body::Said(_) | Body::Bars(_) => 0,
        }
    }
}

impl Said {
    /// A paragraph behind a label.
    pub(crate) fn new(label: &'static str, text: impl Into<String>) -> Self {
        Self { label, text: text.into(), tone: Tone::Plain, opens: None }
    }

    /// The same in a tone.
    pub(crate) fn toned(self, tone: Tone) -> Self {
        Self { tone, ..self }
    }

    /// The same, opening a screen.
    pub(crate) fn opening(self, screen: Screen) -> Self {
        Self { opens: Some(screen), ..self }
    }
}

impl Column {
    /// Text, at the left.
    pub(crate) const fn left(title: &'static str, worth: u8) -> Self {
        Self { title, right: false, worth, least: 10 }
    }

    /// A figure, at the right.
    pub(crate) const fn right(title: &'static str, worth: u8) -> Self {
        Self { title, right: true, worth, least: usize::MAX }
    }

    /// The same, with more that must be left of it.
    pub(crate) const fn at_least(self, least: usize) -> Self {
        Self { least, ..self }
    }
}

impl Cell {
    /// A text with a meaning.
    pub(crate) fn toned(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::toned(text, Tone::Plain)
    }
}
