//! What the data of the view says, in one place for everybody who shows it: the terminal and the page.
//!
//! * [`words`]: numbers, times, codes and names as people read them;
//! * [`sentence`]: sentences about decisions, prices and pauses;
//! * [`feed`]: decisions as they happen, and which belong together;
//! * [`group`]: decisions that belong together, and how their machines are paid for;
//! * [`explain`]: whole answers as a [`Story`], which knows neither a width nor a colour until it is shown;
//! * [`Shown`]: messages as data, exactly as the proto file describes them.
//!
//! Nothing is decided here, and nothing is printed.

mod data;
pub mod explain;
pub mod feed;
pub mod group;
pub mod sentence;
pub mod story;
pub mod style;
pub mod words;

use bigfleet_model::text::{is_hidden, shown, shown_lines};

pub use data::Shown;
pub use story::Story;
pub use style::{Paint, Tone};

/// Text from outside as an owned text for people.
pub fn safe(text: impl Into<String>) -> String {
    match text.into() {
        text if text.contains(is_hidden) => shown(&text).into_owned(),
        text => text,
    }
}

/// The same for a text that may have several lines.
pub fn safe_lines(text: impl Into<String>) -> String {
    match text.into() {
        text if text.contains(is_hidden) => shown_lines(&text).into_owned(),
        text => text,
    }
}
