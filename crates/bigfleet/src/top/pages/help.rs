//! The help screen.

use crate::output::Tone;

use super::super::command::COMMANDS;
use super::super::model::Model;
use super::super::page::{Body, Form, Page, Pane, Said};

const KEYS: &[(&str, &str)] = &[
    ("1 2 3 4", "fleet, needs, machines, decisions"),
    ("↑ ↓ j k", "move; PgUp, PgDn, Home, End and g, G go further; Tab goes to the next part"),
    ("Enter →", "open what the cursor is on: a cluster, a need, a machine, a decision"),
    ("Esc ←", "back; at a list, out of the filter"),
    ("/", "filter: words that must occur, and on lists key=value pairs the shard filters by"),
    ("s r", "next order; reverse it"),
    ("p", "pause what the cursor is on for half an hour: finish the line with a reason"),
    (":", "a command, see below"),
    ("?", "this help"),
    ("q Ctrl-C", "quit"),
];

const FILTERS: &[(&str, &str)] = &[
    ("needs", "cluster= resource= reason= priority=LEAST is=short is=gang"),
    ("machines", "cluster= state= type= zone= instance= provider= id=BEGINNING need= is=troubled LABEL="),
    ("decisions", "cluster= action= fate= machine= need="),
];

const SIGNS: &[(&str, &str)] = &[
    ("█", "machines bound to a cluster"),
    ("▓", "on the move: being made, bound, drained or given back"),
    ("░", "idle: hardware that belongs to nobody"),
    ("x", "failed"),
    ("USED", "what is asked for of what is provided, by the resource that is used most"),
    ("·", "quota: could be bought"),
    ("unmet", "needs that are short for another reason than that machines are on their way"),
    ("stale", "nothing was heard for a while: what is shown may be over"),
];

/// Keys, filters and signs.
pub(super) fn page(model: &Model) -> Page {
    let pane = |title: &str, lines: &[(&'static str, &str)]| {
        Pane::new(title, Body::Said(lines.iter().map(|(label, text)| Said::new(label, *text)).collect()))
    };
    let commands = COMMANDS.iter().map(|(command, text)| Said::new("", format!("{command}  {text}")));
    let commands = Pane::new("commands", Body::Said(commands.collect()));
    let mut panes = vec![pane("keys", KEYS), commands, pane("filters", FILTERS), pane("signs", SIGNS)];
    let server = Said::new("watching", model.look.server.clone());
    let notes = model.look.notes.iter().map(|note| Said::new("", note.clone()));
    panes.push(Pane::new(
        "here",
        Body::Said([server].into_iter().chain(notes).map(|said| said.toned(Tone::Plain)).collect()),
    ));
    Page { panes, form: Form::Text }
}
