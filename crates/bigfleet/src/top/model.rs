//! Everything the view knows. It changes only through [`Model::update`], and is drawn as it is.

use std::collections::{BTreeMap, VecDeque};

use bigfleet_view::v1::{Decision, Summary, WatchEvent};
use jiff::tz::TimeZone;

use super::command::Deed;
use super::history::History;
use super::question::{Answer, Question};
use super::screen::{Place, Screen, TABS};

const SECOND: i64 = 1_000_000_000;

/// Without a word for this long, what is shown is called stale: a shard that lives runs a cycle every ten seconds.
const STALE_AFTER_NANOS: i64 = 25 * SECOND;

/// Decisions kept for the feed.
const FEED: usize = 500;

/// What is shown, and where the reader is.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) look: Look,
    /// This machine's clock at the last input.
    pub(crate) now_unix_nanos: i64,
    /// This machine's clock when the shard was last heard.
    pub(crate) heard_unix_nanos: Option<i64>,
    pub(crate) link: Link,
    pub(crate) summary: Option<Box<Summary>>,
    /// Newest first.
    pub(crate) feed: VecDeque<Decision>,
    /// Which of [`TABS`] is shown.
    pub(crate) tab: usize,
    pub(crate) tabs: [Place; 4],
    /// What was opened from the tab, the last on top.
    pub(crate) opened: Vec<Place>,
    /// What is being typed.
    pub(crate) typing: Option<Typing>,
    /// What became of the last command, until the next key.
    pub(crate) told: Option<Result<String, String>>,
    pub(crate) history: History,
    pub(crate) held: BTreeMap<Question, Held>,
}

/// What does not change while the view runs.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) coloured: bool,
    pub(crate) zone: TimeZone,
    /// The address that is watched.
    pub(crate) server: String,
    /// Lines whoever opened the view wants to be read.
    pub(crate) notes: Vec<String>,
}

/// What is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Typing {
    pub(crate) what: Typed,
    pub(crate) text: String,
}

/// What the typed text is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Filter,
    Command,
}

/// How things stand with the shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Connecting,
    Live,
    /// Broken; it is tried again.
    Lost {
        why: String,
    },
}

/// What is known of a question.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) answer: Option<Answer>,
    /// Why the last try gave none.
    pub(crate) refused: Option<String>,
    asked_unix_nanos: i64,
    /// The cycle that was known when it was asked.
    asked_cycle: u64,
    pub(crate) pending: bool,
}

/// What comes from the shard.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Watched(Box<WatchEvent>),
    /// The stream broke or could not be opened.
    Lost {
        why: String,
    },
    Answered {
        question: Question,
        answer: Result<Answer, String>,
    },
    /// What became of a command.
    Told(Result<String, String>),
}

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Ask(Question),
    Tell(Deed),
    Quit,
}

impl Model {
    /// Before anything was heard.
    pub(crate) fn new(look: Look) -> Self {
        Self {
            look,
            now_unix_nanos: 0,
            heard_unix_nanos: None,
            link: Link::Connecting,
            summary: None,
            feed: VecDeque::new(),
            tab: 0,
            tabs: TABS.map(Place::at),
            opened: Vec::new(),
            typing: None,
            told: None,
            history: History::default(),
            held: BTreeMap::new(),
        }
    }

    /// Where the reader is.
    pub(crate) fn place(&self) -> &Place {
        self.opened.last().unwrap_or(&self.tabs[self.tab])
    }

    /// The same, to move in it.
    pub(super) fn place_mut(&mut self) -> &mut Place {
        self.opened.last_mut().unwrap_or(&mut self.tabs[self.tab])
    }

    /// What is known of the question of the present place.
    pub(crate) fn held_here(&self) -> Option<&Held> {
        self.held.get(&Question::of(self.place())?)
    }

    /// The shard's clock, as last heard.
    pub(crate) fn shard_now_unix_nanos(&self) -> i64 {
        self.as_of().map_or(0, |as_of| as_of.now_unix_nanos)
    }

    /// What the last summary is of.
    pub(crate) fn as_of(&self) -> Option<&bigfleet_view::v1::AsOf> {
        self.summary.as_ref()?.as_of.as_ref()
    }

    /// For how long nothing was heard, if that is too long.
    pub(crate) fn stale_nanos(&self) -> Option<i64> {
        let silent = self.now_unix_nanos.saturating_sub(self.heard_unix_nanos?);
        let lost = matches!(self.link, Link::Lost { .. });
        (lost || silent >= STALE_AFTER_NANOS).then_some(silent)
    }

    /// A time of day, where the reader is.
    pub(crate) fn clock(&self, unix_nanos: i64) -> String {
        let time = jiff::Timestamp::from_nanosecond(unix_nanos.into());
        time.map_or_else(
            |_| "-".into(),
            |time| time.to_zoned(self.look.zone.clone()).strftime("%H:%M:%S").to_string(),
        )
    }

    pub(super) fn take(&mut self, message: Message) {
        match message {
            Message::Watched(event) => self.watched(*event),
            Message::Lost { why } => self.link = Link::Lost { why },
            Message::Told(outcome) => self.told = Some(outcome),
            Message::Answered { question, answer } => {
                // The reader may have gone on; then nobody waits for it.
                let Some(held) = self.held.get_mut(&question) else { return };
                held.pending = false;
                match answer {
                    Ok(answer) => (held.answer, held.refused) = (Some(answer), None),
                    Err(why) => held.refused = Some(why),
                }
            }
        }
    }

    fn watched(&mut self, event: WatchEvent) {
        self.link = Link::Live;
        self.heard_unix_nanos = Some(self.now_unix_nanos);
        self.history.add(&event);
        // The first event has only the recent ones; later events repeat them among what is new.
        if self.feed.is_empty()
            && let Some(summary) = &event.summary
        {
            self.feed.extend(summary.recent.iter().cloned());
        }
        let newest = self.feed.front().map_or((0, 0), |decision| (decision.epoch, decision.cycle));
        for decision in event.decisions {
            if (decision.epoch, decision.cycle) > newest {
                self.feed.push_front(decision);
            }
        }
        self.feed.truncate(FEED);
        if let Some(summary) = event.summary {
            self.summary = Some(Box::new(summary));
        }
    }

    /// The question of the present place, if it is time to ask it.
    pub(super) fn due(&mut self) -> Option<Question> {
        let asked: Vec<Question> = self.tabs.iter().chain(&self.opened).filter_map(Question::of).collect();
        // What is under way is not asked a second time, even if the reader left and came back.
        self.held.retain(|question, held| held.pending || asked.contains(question));
        // Before the shard is there, and after it went, there is nobody to ask.
        if self.link != Link::Live {
            return None;
        }
        let question = Question::of(self.place())?;
        let (now, cycle) = (self.now_unix_nanos, self.as_of().map_or(0, |as_of| as_of.cycle));
        if let Some(held) = self.held.get_mut(&question) {
            let old = now.saturating_sub(held.asked_unix_nanos) >= question.refresh_nanos();
            let worth = held.asked_cycle != cycle || held.refused.is_some();
            if held.pending || !old || !worth {
                return None;
            }
            (held.asked_unix_nanos, held.asked_cycle, held.pending) = (now, cycle, true);
        } else {
            let held = Held {
                answer: None,
                refused: None,
                asked_unix_nanos: now,
                asked_cycle: cycle,
                pending: true,
            };
            self.held.insert(question.clone(), held);
        }
        Some(question)
    }

    /// Opens a screen over the present one. One that is open already is returned to, so that going round in circles
    /// does not pile up.
    pub(super) fn open(&mut self, screen: Screen) {
        match self.opened.iter().position(|place| place.screen == screen) {
            Some(at) => self.opened.truncate(at + 1),
            None => self.opened.push(Place::at(screen)),
        }
    }
}
