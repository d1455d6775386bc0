//! What can be typed after `:`, where to go and what to tell the shard.

use bigfleet_view::v1::Mode;

use super::screen::{Screen, TABS};

/// All of them, for the help.
pub(crate) const COMMANDS: &[(&str, &str)] = &[
    (":fleet :needs :machines :decisions", "go to that screen"),
    (":cluster NAME  :need ID  :machine ID", "open one of them"),
    (":pause [CLUSTER] for 30m because REASON", "pause everything, or one cluster; p types this for you"),
    (":resume NUMBER|CLUSTER|all", "end pauses"),
    (":mode observe|approve|auto|inherit [CLUSTER] because REASON", "how much is done without asking"),
    (":approve ID …|all", "say yes to proposals"),
    (":q", "quit"),
];

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// To one of [`TABS`].
    Tab(usize),
    Open(Screen),
    Tell(Deed),
    Quit,
}

/// What the shard is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Of everything if no cluster is named.
    Pause {
        cluster: String,
        for_nanos: i64,
        reason: String,
    },
    Resume(Ended),
    /// Of everything if no cluster is named; unspecified takes an order back.
    Mode {
        mode: Mode,
        cluster: String,
        reason: String,
    },
    /// Everything that waits if none is named.
    Approve {
        ids: Vec<String>,
    },
}

/// Which pauses are to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Number(u64),
    Cluster(String),
    All,
}

impl Command {
    /// Reads what was typed, or says what is wrong with it.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let Some((verb, rest)) = words.split_first() else {
            return Err("type a command; ? lists them".into());
        };
        let tab = TABS.iter().position(|screen| screen.title().eq_ignore_ascii_case(verb));
        Ok(match (*verb, rest) {
            ("q" | "quit", []) => Self::Quit,
            (_, []) if let Some(tab) = tab => Self::Tab(tab),
            ("help", []) => Self::Open(Screen::Help),
            ("cluster", [name]) => Self::Open(Screen::Cluster((*name).into())),
            ("need", [id]) => Self::Open(Screen::Need((*id).into())),
            ("machine", [id]) => Self::Open(Screen::Machine((*id).into())),
            ("cluster" | "need" | "machine", _) => return Err(format!(":{verb} takes one name")),
            ("pause", rest) => Self::Tell(pause(rest)?),
            ("resume", [which]) => Self::Tell(Deed::Resume(ended(which))),
            ("resume", _) => {
                return Err(":resume takes the number of a pause, the name of a cluster, or all".into());
            }
            ("mode", [mode, rest @ ..]) => Self::Tell(set_mode(mode, rest)?),
            ("mode", []) => return Err("say which mode: observe, approve, auto or inherit".into()),
            ("approve", ["all"]) => Self::Tell(Deed::Approve { ids: Vec::new() }),
            ("approve", ids) if !ids.is_empty() => {
                Self::Tell(Deed::Approve { ids: ids.iter().map(ToString::to_string).collect() })
            }
            ("approve", _) => {
                return Err(
                    "say which: :approve ID …, or :approve all; `bigfleet get proposals` lists them".into()
                );
            }
            _ => return Err(format!("there is no command :{verb}; ? lists them")),
        })
    }
}

/// `CLUSTER for 30m because REASON`, in parts: what stands before `because`, and the reason.
fn because<'a>(words: &[&'a str]) -> Result<(Vec<&'a str>, String), String> {
    let at = words.iter().position(|word| *word == "because");
    let at = at
        .filter(|at| at + 1 < words.len())
        .ok_or("say why: … because REASON; whoever wonders will read it")?;
    Ok((words[..at].to_vec(), words[at + 1..].join(" ")))
}

fn pause(words: &[&str]) -> Result<Deed, String> {
    let (words, reason) = because(words)?;
    let (cluster, span) = match words[..] {
        ["for", span] => ("", span),
        [cluster, "for", span] => (cluster, span),
        _ => return Err("say for how long: :pause [CLUSTER] for 30m because REASON".into()),
    };
    let for_nanos = crate::at::nanos(span).map_err(|error| error.to_string())?;
    if for_nanos <= 0 {
        return Err("a pause cannot end before it begins".into());
    }
    Ok(Deed::Pause { cluster: cluster.into(), for_nanos, reason })
}

fn ended(which: &str) -> Ended {
    match (which, which.parse()) {
        ("all", _) => Ended::All,
        (_, Ok(number)) => Ended::Number(number),
        (cluster, Err(_)) => Ended::Cluster(cluster.into()),
    }
}

fn set_mode(name: &str, words: &[&str]) -> Result<Deed, String> {
    let mode = match name {
        "observe" => Mode::Observe,
        "approve" => Mode::Approve,
        "auto" => Mode::Auto,
        "inherit" => Mode::Unspecified,
        _ => return Err(format!("there is no mode {name}; there are observe, approve, auto and inherit")),
    };
    let (words, reason) = match (mode, words.contains(&"because")) {
        // To take an order back needs no reason.
        (Mode::Unspecified, false) => (words.to_vec(), String::new()),
        _ => because(words)?,
    };
    match words[..] {
        [] => Ok(Deed::Mode { mode, cluster: String::new(), reason }),
        [cluster] => Ok(Deed::Mode { mode, cluster: cluster.into(), reason }),
        _ => Err(format!(":mode {name} [CLUSTER] because REASON")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000_000;

    #[test]
    fn commands_are_read_and_what_is_wrong_with_others_is_said() {
        let read = |text| Command::read(text);
        let tell = |deed| Ok(Command::Tell(deed));
        assert_eq!(read("q"), Ok(Command::Quit));
        assert_eq!(read("  Machines "), Ok(Command::Tab(2)));
        assert_eq!(read("need 77aa"), Ok(Command::Open(Screen::Need("77aa".into()))));
        let pause = |cluster: &str, for_nanos, reason: &str| {
            tell(Deed::Pause { cluster: cluster.into(), for_nanos, reason: reason.into() })
        };
        assert_eq!(read("pause for 90s because why not"), pause("", MINUTE * 3 / 2, "why not"));
        assert_eq!(read("pause shop for 1h30m because of rain"), pause("shop", 90 * MINUTE, "of rain"));
        assert_eq!(read("resume 3"), tell(Deed::Resume(Ended::Number(3))));
        assert_eq!(read("resume all"), tell(Deed::Resume(Ended::All)));
        assert_eq!(read("resume shop"), tell(Deed::Resume(Ended::Cluster("shop".into()))));
        let mode = |mode, cluster: &str, reason: &str| {
            tell(Deed::Mode { mode, cluster: cluster.into(), reason: reason.into() })
        };
        assert_eq!(read("mode observe because first week"), mode(Mode::Observe, "", "first week"));
        assert_eq!(read("mode approve shop because x"), mode(Mode::Approve, "shop", "x"));
        assert_eq!(read("mode inherit shop"), mode(Mode::Unspecified, "shop", ""));
        assert_eq!(read("approve all"), tell(Deed::Approve { ids: Vec::new() }));
        assert_eq!(read("approve 1a 2b"), tell(Deed::Approve { ids: vec!["1a".into(), "2b".into()] }));
        for (text, said) in [
            ("", "type a command"),
            ("dance", "no command :dance"),
            ("cluster", "takes one name"),
            ("pause", "say why"),
            ("pause shop because", "say why"),
            ("pause shop because rain", "say for how long"),
            ("pause for ever because rain", "is not a span"),
            ("pause for -3m because rain", "is not a span"),
            ("resume", "takes the number"),
            ("mode", "which mode"),
            ("mode strict", "no mode strict"),
            ("mode auto shop", "say why"),
            ("approve", "say which"),
        ] {
            let wrong = read(text).unwrap_err();
            assert!(wrong.contains(said), "{text:?}: {wrong}");
        }
    }
}
