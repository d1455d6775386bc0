//! What each screen says, made from the model.

mod cluster;
mod decision;
mod decisions;
mod fleet;
mod help;
mod machine;
mod machines;
mod need;
mod needs;

use crate::output::Tone;

use super::filter::Filter;
use super::model::{Link, Model, Typed};
use super::page::{Body, Form, Page, Pane, Row, Said};
use super::question::Answer;
use super::screen::Screen;

/// The page of the present place.
pub(crate) fn page(model: &Model) -> Page {
    let answer = model.held_here().and_then(|held| held.answer.as_ref());
    match (&model.place().screen, answer) {
        (Screen::Help, _) => help::page(model),
        (Screen::Fleet, _) => match &model.summary {
            Some(summary) => fleet::page(model, summary),
            None => waiting(model),
        },
        (Screen::Needs, Some(Answer::Needs { needs, total })) => needs::page(model, needs, *total),
        (Screen::Machines, Some(Answer::Machines { machines, known })) => {
            machines::page(model, machines, *known)
        }
        (Screen::Decisions, Some(Answer::Decisions(decisions))) => decisions::page(model, decisions),
        (Screen::Cluster(_), Some(Answer::Cluster(answer))) => cluster::page(model, answer),
        (Screen::Need(_), Some(Answer::Need(answer))) => need::page(model, answer),
        (Screen::Machine(_), Some(Answer::Machine(answer))) => machine::page(model, answer),
        (Screen::Decision { .. }, Some(Answer::Decision(answer))) => decision::page(model, answer),
        _ => waiting(model),
    }
}

/// Nothing is known yet: why, and what is done about it.
fn waiting(model: &Model) -> Page {
    let refused = model.held_here().and_then(|held| held.refused.clone());
    let said = match (&model.link, refused) {
        (Link::Lost { why }, _) => vec![
            Said::new("no answer", why.clone()).toned(Tone::Bad),
            Said::new("next", "it is tried again until it answers; q quits"),
        ],
        (_, Some(why)) => {
            vec![Said::new("refused", why).toned(Tone::Bad), Said::new("next", "Esc goes back")]
        }
        (Link::Connecting, None) => vec![Said::new("", format!("connecting to {} …", model.look.server))],
        (Link::Live, None) => vec![Said::new("", "asking …").toned(Tone::Dim)],
    };
    Page { panes: vec![Pane::new("", Body::Said(said))], form: Form::Text }
}

/// The filter in force: what is being typed counts already as far as words go.
fn filter(model: &Model) -> Filter {
    let typed = model.typing.as_ref().filter(|typing| typing.what == Typed::Filter);
    Filter::read(typed.map_or(&model.place().filter, |typing| &typing.text))
}

/// Leaves out the rows that the words do not admit.
fn admitted(model: &Model, mut rows: Vec<Row>) -> Vec<Row> {
    let filter = filter(model);
    if !filter.words.is_empty() {
        rows.retain(|row| filter.admits(&row.cells.iter().map(|cell| cell.text.as_str())));
    }
    rows
}

/// The items in the order the reader chose; `orders` beyond the first, which leaves them as they are.
fn sorted<'a, T>(model: &Model, items: &'a [T], orders: &[fn(&T, &T) -> std::cmp::Ordering]) -> Vec<&'a T> {
    let place = model.place();
    let mut sorted: Vec<&T> = items.iter().collect();
    if let Some(order) = place.sort.checked_sub(1).and_then(|number| orders.get(number)) {
        sorted.sort_by(|a, b| order(a, b));
    }
    if place.reversed {
        sorted.reverse();
    }
    sorted
}

/// `12`, or `12 of 2,000 fetched of 500,000` while something is left out.
fn counted(shown: usize, fetched: usize, all: u64) -> String {
    use crate::words::thousands;
    match (shown == fetched, fetched as u64 >= all) {
        (true, true) => thousands(all),
        (false, true) => format!("{} of {}", thousands(shown as u64), thousands(all)),
        (true, false) => format!("the first {} of {}; / narrows", thousands(fetched as u64), thousands(all)),
        (false, false) => format!(
            "{} of the first {} of {}; / narrows",
            thousands(shown as u64),
            thousands(fetched as u64),
            thousands(all)
        ),
    }
}

/// What sort of machine it is: `m5.2xlarge spot zone-b`, as far as it is known.
fn sort_of(instance_type: &str, capacity_type: i32, zone: &str) -> String {
    let capacity_type =
        if capacity_type == 0 { String::new() } else { crate::words::capacity_type(capacity_type) };
    let parts = [instance_type, &capacity_type, zone];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
