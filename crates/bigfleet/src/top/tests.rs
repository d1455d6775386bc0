//! Every screen as people see it, and that nothing they press can break it.

use insta::assert_snapshot;
use jiff::tz::TimeZone;
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};

use super::canned::{self, NOW};
use super::command::Deed;
use super::draw::draw;
use super::key::Key;
use super::model::{Link, Look, Message, Model, Order};
use super::question::{Answer, Question};
use super::screen::Screen;
use super::update::Input;

const SECOND: i64 = 1_000_000_000;

fn look() -> Look {
    Look { coloured: true, zone: TimeZone::UTC, server: "http://127.0.0.1:7780".into(), notes: Vec::new() }
}

fn answered(question: &Question) -> Message {
    let answer = match question {
        Question::Needs(_) => Answer::Needs { needs: canned::needs(), total: 18 },
        Question::Machines(_) => Answer::Machines { machines: canned::machines(), known: 120 },
        Question::Decisions(_) => Answer::Decisions(canned::decisions()),
        Question::Cluster(_) => Answer::Cluster(Box::new(canned::cluster_explanation())),
        Question::Need(_) => Answer::Need(Box::new(canned::need_explanation())),
        Question::Machine(_) => Answer::Machine(Box::new(canned::machine_explanation())),
        Question::Decision { .. } => Answer::Decision(Box::new(canned::decision_explanation())),
    };
    Message::Answered { question: question.clone(), answer: Ok(answer) }
}

/// Feeds an input, and answers what is asked at once.
fn feed(model: &mut Model, input: Input) -> Vec<Order> {
    let orders = model.update(NOW, input);
    for order in &orders {
        if let Order::Ask(question) = order {
            model.update(NOW, Input::Message(answered(question)));
        }
    }
    orders
}

fn live() -> Model {
    let mut model = Model::new(look());
    feed(&mut model, Input::Message(Message::Watched(Box::new(canned::watch_event()))));
    model
}

/// A model after these keys. Text is typed; `\n` is Enter, `\u{1b}` Escape, `\t` Tab, `↓` and `↑` are themselves.
fn after(keys: &str) -> Model {
    let mut model = live();
    press(&mut model, keys);
    model
}

fn press(model: &mut Model, keys: &str) -> Vec<Order> {
    keys.chars().flat_map(|key| feed(model, Input::Key(read(key)))).collect()
}

fn read(key: char) -> Key {
    match key {
        '\n' => Key::Enter,
        '\u{1b}' => Key::Escape,
        '\t' => Key::Tab,
        '↓' => Key::Down,
        '↑' => Key::Up,
        other => Key::Char(other),
    }
}

fn terminal(model: &Model, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model)).unwrap();
    terminal
}

fn picture(model: &Model, width: u16, height: u16) -> String {
    terminal(model, width, height).backend().to_string()
}

/// Both sizes of a screen reached by these keys.
fn snapshots(name: &str, model: &Model) {
    assert_snapshot!(format!("{name}_80x24"), picture(model, 80, 24));
    assert_snapshot!(format!("{name}_120x40"), picture(model, 120, 40));
}

#[test]
fn fleet() {
    snapshots("fleet", &live());
}

#[test]
fn fleet_with_notes() {
    let mut model = live();
    model.look.notes =
        vec!["try       bigfleet explain need ml/train-7".into(), "ctrl-c    stops everything".into()];
    assert_snapshot!(picture(&model, 80, 24));
}

#[test]
fn needs() {
    snapshots("needs", &after("2"));
}

#[test]
fn machines() {
    snapshots("machines", &after("3"));
}

#[test]
fn decisions() {
    snapshots("decisions", &after("4"));
}

#[test]
fn cluster() {
    snapshots("cluster", &after("↓\n"));
}

#[test]
fn need() {
    snapshots("need", &after("\t\n"));
}

#[test]
fn machine() {
    snapshots("machine", &after("3\n"));
}

#[test]
fn decision() {
    snapshots("decision", &after("4↓↓\n"));
}

#[test]
fn help() {
    snapshots("help", &after("?"));
}

#[test]
fn before_the_first_word_and_without_an_answer() {
    let mut model = Model::new(look());
    assert_snapshot!("connecting", picture(&model, 80, 8));
    let why = "nobody listens at http://127.0.0.1:7780 (the default)\n  start one with `bigfleet up`".into();
    model.update(NOW, Input::Message(Message::Lost { why }));
    assert_snapshot!("no_answer", picture(&model, 80, 8));
}

#[test]
fn silence_is_called_stale_and_a_word_ends_it() {
    let mut model = live();
    model.update(NOW + 24 * SECOND, Input::Tick);
    assert!(picture(&model, 80, 24).contains("live"));
    model.update(NOW + 25 * SECOND, Input::Tick);
    assert!(picture(&model, 80, 24).contains("STALE 25s"));
    let watched = Message::Watched(Box::new(canned::watch_event()));
    model.update(NOW + 26 * SECOND, Input::Message(watched));
    assert!(!picture(&model, 80, 24).contains("STALE"));
    model.update(NOW + 27 * SECOND, Input::Message(Message::Lost { why: "hung up".into() }));
    let lost = picture(&model, 80, 24);
    assert!(lost.contains("STALE 1s") && lost.contains("hung up") && lost.contains("train-7"), "{lost}");
}

#[test]
fn a_small_terminal_still_shows_the_label_and_the_chosen_row() {
    assert_snapshot!("fleet_40x8", picture(&after("↓"), 40, 8));
    let tiny = picture(&after("↓"), 24, 3);
    assert!(tiny.contains("SIMULATED") && tiny.contains("ml"), "{tiny}");
}

#[test]
fn without_colour_nothing_is_coloured_and_with_it_no_background_is_set() {
    let mut model = live();
    for coloured in [true, false] {
        model.look.coloured = coloured;
        let terminal = terminal(&model, 120, 40);
        let cells = &terminal.backend().buffer().content;
        assert!(cells.iter().all(|cell| cell.bg == Color::Reset));
        assert_eq!(cells.iter().any(|cell| cell.fg != Color::Reset), coloured);
        assert!(cells.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)));
    }
}

#[test]
fn enter_drills_and_escape_returns() {
    let mut model = after("↓\n");
    assert_eq!(model.place().screen, Screen::Cluster("ml".into()));
    press(&mut model, "\u{1b}");
    assert_eq!(model.place().screen, Screen::Fleet);
    assert_eq!(model.place().cursor, 1);
    // From the need to who holds what it wants.
    let mut model = after("\t\n");
    press(&mut model, "\t\t\n");
    assert_eq!(model.place().screen, Screen::Need("5e5e5e5e00000000".into()));
    assert_eq!(model.opened.len(), 2);
    // Opening what is open already goes back to it.
    model.open(Screen::Need("77aa88bb00000000".into()));
    assert_eq!(model.opened.len(), 1);
}

#[test]
fn words_filter_while_they_are_typed_and_pairs_when_they_are_entered() {
    let mut model = after("3");
    assert!(press(&mut model, "/state=idle drain").is_empty());
    assert!(picture(&model, 80, 24).contains("/state=idle drain"));
    assert!(!picture(&model, 80, 24).contains("aws-0031"));
    let asked = press(&mut model, "\n");
    assert_eq!(asked, [Order::Ask(Question::Machines(vec![("state".into(), "idle".into())]))]);
    assert!(press(&mut model, "\u{1b}\u{1b}").is_empty() || model.tab == 0);
    assert_eq!((model.tab, model.tabs[2].filter.as_str()), (0, ""));
}

#[test]
fn a_filter_that_makes_no_sense_says_so_and_asks_nothing() {
    let mut model = after("2");
    assert!(press(&mut model, "/zone=a\n").is_empty());
    assert!(picture(&model, 100, 24).contains("zone=a means nothing here: use cluster="));
}

#[test]
fn sorting_goes_round_and_can_be_reversed() {
    let first = |model: &Model| {
        let stops = super::pages::page(model).stops();
        stops[0].key.clone()
    };
    let mut model = live();
    let mut seen = vec![first(&model)];
    for _ in 0..4 {
        press(&mut model, "s");
        seen.push(first(&model));
    }
    assert_eq!(seen, ["lane batch", "lane ml", "lane shop", "lane batch", "lane batch"]);
    press(&mut model, "r");
    assert_eq!(first(&model), "lane shop");
}

#[test]
fn the_cursor_stays_with_its_row_and_the_top_with_what_is_new() {
    let mut model = after("\t\t");
    let chosen = |model: &Model| {
        let stops = super::pages::page(model).stops();
        stops[model.cursor(&stops)].key.clone()
    };
    let before = chosen(&model);
    assert_eq!(before, "3/1842/4/metal-07");
    let mut event = canned::watch_event();
    let newer = bigfleet_view::v1::Decision {
        cycle: 1843,
        machine: "new-1".into(),
        ..canned::decisions()[0].clone()
    };
    event.decisions = vec![newer];
    feed(&mut model, Input::Message(Message::Watched(Box::new(event))));
    assert_eq!(model.feed.len(), 5);
    assert_eq!(model.feed[0].machine, "new-1");
    assert_eq!(chosen(&model), before);
}

#[test]
fn a_question_is_asked_again_only_when_a_cycle_passed_and_it_is_old() {
    let mut model = after("2");
    let watched = |cycle: u64| {
        let mut event = canned::watch_event();
        event.summary.as_mut().unwrap().as_of.as_mut().unwrap().cycle = cycle;
        Input::Message(Message::Watched(Box::new(event)))
    };
    assert_eq!(model.update(NOW + 5 * SECOND, watched(1842)), []);
    assert_eq!(model.update(NOW + SECOND, watched(1843)), []);
    let again = Order::Ask(Question::Needs(Vec::new()));
    assert_eq!(model.update(NOW + 2 * SECOND, Input::Tick), std::slice::from_ref(&again));
    // Not while the answer is awaited.
    assert_eq!(model.update(NOW + 9 * SECOND, watched(1844)), []);
    // Nor while the shard is gone, but then.
    let lost = Err("gone".to_owned());
    let refused = Message::Answered { question: Question::Needs(Vec::new()), answer: lost };
    model.link = Link::Lost { why: "gone".into() };
    assert_eq!(model.update(NOW + 9 * SECOND, Input::Message(refused)), []);
    assert_eq!(model.update(NOW + 10 * SECOND, watched(1844)), [again]);
}

#[test]
fn a_refusal_is_shown_and_late_answers_change_nothing() {
    let mut model = live();
    let orders = model.update(NOW, Input::Key(Key::Enter));
    assert_eq!(orders, [Order::Ask(Question::Cluster("batch".into()))]);
    let answer = Err("no cluster batch; did you mean bach?".to_owned());
    let question = Question::Cluster("batch".into());
    model.update(NOW, Input::Message(Message::Answered { question: question.clone(), answer }));
    assert!(picture(&model, 80, 24).contains("did you mean bach?"));
    model.update(NOW, Input::Key(Key::Escape));
    model.update(NOW, Input::Message(answered(&question)));
    assert!(model.held.is_empty());
}

#[test]
fn what_is_under_the_cursor_is_paused_with_a_reason() {
    let mut model = after("p");
    assert!(picture(&model, 80, 24).contains(":pause batch for 30m because "), "the first cluster");
    let orders = press(&mut model, "rain\n");
    let deed = Deed::Pause { cluster: "batch".into(), for_nanos: 30 * 60 * SECOND, reason: "rain".into() };
    assert_eq!(orders, [Order::Tell(deed)]);
    model.update(
        NOW,
        Input::Message(Message::Told(Ok("paused everything in batch; :resume 4 ends it".into()))),
    );
    assert!(picture(&model, 80, 24).contains("paused everything in batch; :resume 4 ends it"));
    press(&mut model, "j");
    assert!(!picture(&model, 80, 24).contains(":resume 4"), "until the next key");
    model.update(NOW, Input::Message(Message::Told(Err("the role admin is needed".into()))));
    assert!(picture(&model, 80, 24).contains("the role admin is needed"));
    // In the screen of a cluster it is that one; where there is none, everything.
    assert!(picture(&after("\np"), 80, 24).contains(":pause batch for 30m because "));
    assert!(picture(&after("4p"), 80, 24).contains(":pause for 30m because "));
}

#[test]
fn commands_go_places_and_what_is_wrong_can_be_mended() {
    let title = |model: &Model| model.place().screen.title();
    assert_eq!(title(&after(":machines\n")), "Machines");
    assert_eq!(title(&after(":need 77aa88bb00000000\n")), "need 77aa88bb");
    let mut model = after(":pause shop\n");
    let said = picture(&model, 80, 24);
    assert!(said.contains(":pause shop") && said.contains("say why"), "{said}");
    assert_eq!(press(&mut model, " for 1h because rain\n").len(), 1);
    assert_eq!(press(&mut after(":"), "q\n"), [Order::Quit]);
    assert_eq!(press(&mut after(":approve all"), "\n"), [Order::Tell(Deed::Approve { ids: Vec::new() })]);
    assert_eq!(title(&after(":machines\u{1b}")), "Fleet", "Esc leaves it");
}

#[test]
fn fleet_with_a_history() {
    let mut model = live();
    for (cycle, usd_per_hour, secs, unmet) in [(1843, 4.56, 10, 2), (1844, 6.12, 20, 1), (1845, 5.5, 30, 0)] {
        let mut event = canned::watch_event();
        let summary = event.summary.as_mut().unwrap();
        let as_of = summary.as_of.as_mut().unwrap();
        (as_of.cycle, as_of.cycle_unix_nanos) = (cycle, NOW + secs * SECOND);
        (summary.usd_per_hour, summary.unmet) = (usd_per_hour, unmet);
        event.decisions.clear();
        feed(&mut model, Input::Message(Message::Watched(Box::new(event))));
    }
    snapshots("fleet_with_a_history", &model);
}

#[test]
fn quitting() {
    for key in [Key::Char('q'), Key::Interrupt] {
        assert_eq!(live().update(NOW, Input::Key(key)), [Order::Quit]);
    }
    // A letter of a filter is no command; Ctrl-C is always one.
    let mut model = after("/");
    assert_eq!(model.update(NOW, Input::Key(Key::Char('q'))), []);
    assert_eq!(model.update(NOW, Input::Key(Key::Interrupt)), [Order::Quit]);
}

/// One thing that may happen, as numbers that proptest can shrink.
#[derive(Clone, Debug)]
enum Happening {
    Key(Key),
    Watched {
        cycle: u64,
        lanes: usize,
        decisions: usize,
    },
    /// Whatever was asked last is answered, or refused.
    Answer {
        fits: bool,
    },
    Lost,
    Tick(i64),
    Draw {
        width: u16,
        height: u16,
    },
}

fn happening() -> impl Strategy<Value = Happening> {
    let special = prop::sample::select(vec![
        Key::Up,
        Key::Down,
        Key::PageUp,
        Key::PageDown,
        Key::Home,
        Key::End,
        Key::Tab,
        Key::Enter,
        Key::Escape,
        Key::Backspace,
        Key::Interrupt,
    ]);
    let letter =
        prop::sample::select("jkghlGsrp:/?1234 =xcluster\u{301}語\u{1b}".chars().collect::<Vec<_>>());
    prop_oneof![
        4 => special.prop_map(Happening::Key),
        4 => letter.prop_map(|letter| Happening::Key(Key::Char(letter))),
        2 => (0..9_u64, 0..5_usize, 0..4_usize)
            .prop_map(|(cycle, lanes, decisions)| Happening::Watched { cycle, lanes, decisions }),
        3 => any::<bool>().prop_map(|fits| Happening::Answer { fits }),
        1 => Just(Happening::Lost),
        1 => any::<i64>().prop_map(Happening::Tick),
        4 => (1..140_u16, 1..50_u16).prop_map(|(width, height)| Happening::Draw { width, height }),
        2 => (1..6_u16, 1..6_u16).prop_map(|(width, height)| Happening::Draw { width, height }),
    ]
}

/// A summary with more or less in it, and with names a terminal does not like.
fn odd(cycle: u64, lanes: usize, decisions: usize) -> Message {
    let mut event = canned::watch_event();
    event.decisions = canned::decisions().into_iter().take(decisions).collect();
    for decision in &mut event.decisions {
        decision.cycle = 1842 + cycle;
    }
    let summary = event.summary.as_mut().unwrap();
    summary.lanes.truncate(lanes);
    if lanes == 4 {
        let mut lane = summary.lanes[0].clone();
        lane.cluster = "\u{1b}[2Jクラスタ\n\u{200b}e\u{301}".repeat(9);
        (lane.usd_per_hour, lane.machines) = (f64::NAN, u32::MAX);
        summary.lanes.push(lane);
        summary.usd_per_hour = f64::INFINITY;
        for cell in &mut summary.supply {
            (cell.machines, cell.state) = (u32::MAX, 99);
        }
    }
    if lanes == 0 {
        *summary = bigfleet_view::v1::Summary::default();
    } else {
        summary.as_of.as_mut().unwrap().cycle = cycle;
    }
    Message::Watched(Box::new(event))
}

/// An answer of the right sort with nothing in it.
fn hollow(question: &Question) -> Message {
    let answer = match question {
        Question::Needs(_) => Answer::Needs { needs: vec![bigfleet_view::v1::Need::default()], total: 0 },
        Question::Machines(_) => Answer::Machines { machines: Vec::new(), known: u64::MAX },
        Question::Decisions(_) => Answer::Decisions(vec![bigfleet_view::v1::Decision::default(); 2]),
        Question::Cluster(_) => Answer::Cluster(Box::default()),
        Question::Need(_) => Answer::Need(Box::default()),
        Question::Machine(_) => Answer::Machine(Box::default()),
        Question::Decision { .. } => Answer::Decision(Box::default()),
    };
    Message::Answered { question: question.clone(), answer: Ok(answer) }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_happens_breaks_it(happenings in prop::collection::vec(happening(), 1..60)) {
        let mut model = Model::new(look());
        let mut asked: Vec<Question> = Vec::new();
        let mut now = NOW;
        for happening in happenings {
            let input = match happening {
                Happening::Key(key) => Input::Key(key),
                Happening::Watched { cycle, lanes, decisions } => Input::Message(odd(cycle, lanes, decisions)),
                Happening::Lost => Input::Message(Message::Lost { why: "gone\naway".into() }),
                Happening::Answer { fits } => match asked.pop() {
                    Some(question) if fits => Input::Message(answered(&question)),
                    Some(question) => Input::Message(hollow(&question)),
                    None => Input::Tick,
                },
                Happening::Tick(to) => {
                    now = to;
                    Input::Tick
                }
                Happening::Draw { width, height } => {
                    terminal(&model, width, height);
                    continue;
                }
            };
            for order in model.update(now, input) {
                if let Order::Ask(question) = order {
                    prop_assert!(!asked.contains(&question), "asked twice at a time: {question:?}");
                    asked.push(question);
                }
            }
            // Bounded, however long it goes on.
            prop_assert!(model.held.len() <= 4 + model.opened.len() + asked.len());
            prop_assert!(model.feed.len() <= 500);
        }
    }
}
