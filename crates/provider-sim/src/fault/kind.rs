//! The kinds of faults and the words each takes.

use std::fmt::{self, Write as _};

use crate::span::Span;

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the table below says what each does")]
pub enum Kind {
    ZoneOutage,
    ApiOutage,
    Throttle,
    StockOut,
    SpotStorm,
    SpotReclaim,
    PriceSpike,
    HostLoss,
    Fail,
    Hang,
    Slow,
    StaleList,
    TruncatedList,
    DuplicatedList,
    ShuffledList,
    LateAnswers,
    LostAnswers,
    RepeatedAnswers,
    NoNode,
    StuckConfiguring,
    ClockSkew,
    HalvedList,
    ContradictedList,
    ShownFailed,
    DeniedMoves,
}

/// A word's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A name, or `*` for all.
    Text(String),
    /// A number.
    Number(f64),
    /// A span of time.
    Span(Span),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => write!(f, "{number}"),
            Self::Span(span) => write!(f, "{span}"),
        }
    }
}

/// What a word may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    /// A name.
    Text,
    /// One of these names.
    OneOf(&'static [&'static str]),
    /// A number in this range.
    Number(f64, f64),
    /// A span of time.
    Span,
}

/// A word a kind takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it is if left out; must be given if there is nothing.
    pub default: Option<&'static str>,
    /// Whether it may be given without its name, in the order of the table.
    pub bare: bool,
    pub(crate) shape: Shape,
}

/// A kind and its words.
#[derive(Clone, Copy, Debug)]
pub struct KindInfo {
    /// Which.
    pub kind: Kind,
    /// How it is called.
    pub name: &'static str,
    /// What it does.
    pub help: &'static str,
    /// What it takes.
    pub params: &'static [Param],
    /// Whether it happens once instead of lasting.
    pub once: bool,
}

const fn param(name: &'static str, default: Option<&'static str>, bare: bool, shape: Shape) -> Param {
    Param { name, default, bare, shape }
}

const ANY: Option<&str> = Some("*");
const ZONE: Param = param("zone", ANY, false, Shape::Text);
const TYPE: Param = param("type", ANY, false, Shape::Text);
const RACK: Param = param("rack", ANY, false, Shape::Text);
const MACHINE: Param = param("machine", ANY, false, Shape::Text);
const CHANCE: Param = param("p", Some("1"), false, Shape::Number(0.0, 1.0));
const MOVE: Param = param("move", ANY, true, Shape::OneOf(&["*", "create", "configure", "drain", "delete"]));
const COUNT: Param = param("count", Some("1"), false, Shape::Number(1.0, 1e9));

const fn factor(default: &'static str) -> Param {
    param("factor", Some(default), false, Shape::Number(0.0, 1e6))
}

const fn by(default: &'static str) -> Param {
    param("by", Some(default), false, Shape::Span)
}

const fn lasts(kind: Kind, name: &'static str, params: &'static [Param], help: &'static str) -> KindInfo {
    KindInfo { kind, name, help, params, once: false }
}

const fn once(kind: Kind, name: &'static str, params: &'static [Param], help: &'static str) -> KindInfo {
    KindInfo { kind, name, help, params, once: true }
}

/// All kinds, in the order in which they are documented.
pub const KINDS: [KindInfo; 25] = [
    lasts(
        Kind::ZoneOutage,
        "zone-outage",
        &[param("zone", None, true, Shape::Text)],
        "machines of the zone fail, and none can be made there",
    ),
    lasts(Kind::ApiOutage, "api-outage", &[CHANCE], "calls are answered UNAVAILABLE and change nothing"),
    lasts(
        Kind::Throttle,
        "throttle",
        &[
            param("rate", Some("10"), true, Shape::Number(0.0, 1e9)),
            param("retry", Some("5s"), false, Shape::Span),
        ],
        "calls above so many a second are answered RESOURCE_EXHAUSTED, with the time to come back",
    ),
    lasts(
        Kind::StockOut,
        "stock-out",
        &[param("type", ANY, true, Shape::Text), param("zone", ANY, true, Shape::Text)],
        "Create of rented capacity fails with insufficient capacity",
    ),
    lasts(
        Kind::SpotStorm,
        "spot-storm",
        &[factor("20"), ZONE, TYPE],
        "spot is taken back so many times as often",
    ),
    once(
        Kind::SpotReclaim,
        "spot-reclaim",
        &[COUNT, MACHINE, ZONE, TYPE, RACK],
        "so many spot machines get their notice",
    ),
    lasts(
        Kind::PriceSpike,
        "price-spike",
        &[factor("2"), ZONE, TYPE],
        "spot costs so many times as much, on demand at most",
    ),
    once(
        Kind::HostLoss,
        "host-loss",
        &[COUNT, MACHINE, ZONE, TYPE, RACK],
        "so many hosts die without a word",
    ),
    lasts(Kind::Fail, "fail", &[MOVE, CHANCE, MACHINE, ZONE, TYPE], "moves end in FAILED"),
    lasts(Kind::Hang, "hang", &[MOVE, CHANCE, MACHINE, ZONE, TYPE], "moves never end, until their time-out"),
    lasts(Kind::Slow, "slow", &[MOVE, factor("5"), MACHINE, ZONE, TYPE], "moves take so many times as long"),
    lasts(Kind::StaleList, "stale-list", &[by("60s")], "List shows a view that is renewed only so often"),
    lasts(
        Kind::TruncatedList,
        "truncated-list",
        &[param("keep", Some("0.5"), true, Shape::Number(0.0, 1.0))],
        "List leaves out all but this share of the machines",
    ),
    lasts(
        Kind::DuplicatedList,
        "duplicated-list",
        &[param("share", Some("0.1"), true, Shape::Number(0.0, 1.0))],
        "List shows this share of the machines twice",
    ),
    lasts(Kind::ShuffledList, "shuffled-list", &[], "List is in another order each time"),
    lasts(
        Kind::LateAnswers,
        "late-answers",
        &[by("5s"), CHANCE],
        "answers come this much later; moves begin in time",
    ),
    lasts(Kind::LostAnswers, "lost-answers", &[CHANCE], "moves begin, but the caller is told UNAVAILABLE"),
    lasts(
        Kind::RepeatedAnswers,
        "repeated-answers",
        &[CHANCE],
        "a move is answered with the machine's previous answer",
    ),
    lasts(
        Kind::NoNode,
        "no-node",
        &[CHANCE, MACHINE, ZONE, TYPE],
        "CONFIGURED is reported, but no node is there",
    ),
    lasts(
        Kind::StuckConfiguring,
        "stuck-configuring",
        &[CHANCE, MACHINE, ZONE, TYPE],
        "the node is there, but CONFIGURED is not reported",
    ),
    lasts(
        Kind::ClockSkew,
        "clock-skew",
        &[param("secs", Some("30"), true, Shape::Number(-1e9, 1e9))],
        "times the provider tells are wrong by this many seconds",
    ),
    lasts(Kind::HalvedList, "halved-list", &[], "List leaves out another half of the machines each time"),
    lasts(
        Kind::ContradictedList,
        "contradicted-list",
        &[param("share", Some("0.1"), true, Shape::Number(0.0, 1.0))],
        "List shows this share of the machines twice, the second time as FAILED",
    ),
    lasts(
        Kind::ShownFailed,
        "shown-failed",
        &[param("share", Some("1"), true, Shape::Number(0.0, 1.0))],
        "List and Get say FAILED of this share of the configured machines, which are fine",
    ),
    lasts(Kind::DeniedMoves, "denied-moves", &[CHANCE], "moves begin, but the caller is told NOT_FOUND"),
];

impl Kind {
    /// What the table says about it.
    pub fn info(self) -> &'static KindInfo {
        KINDS.iter().find(|info| info.kind == self).expect("the table is complete")
    }
}

impl KindInfo {
    /// How it is typed, with what its words are if left out.
    pub fn usage(&self) -> String {
        let words = self.params.iter().map(|param| match (param.default, param.bare) {
            (None, _) => format!(" {}", param.name.to_uppercase()),
            (Some(default), _) => format!(" [{}={default}]", param.name),
        });
        std::iter::once(self.name.to_string()).chain(words).collect()
    }
}

/// The table as Markdown, for the page that documents it.
pub fn markdown() -> String {
    let mut text = String::from("| fault | what happens |\n|---|---|\n");
    for info in &KINDS {
        let once = if info.once { " (once)" } else { "" };
        writeln!(text, "| `{}` | {}{once} |", info.usage(), info.help).expect("a string takes everything");
    }
    text
}
