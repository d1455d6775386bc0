//! The loop that turns keys, messages and time into inputs, and pictures and questions into deeds.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::{Clock, SystemClock};
use bigfleet_view::view_client;
use crossterm::event::{Event, EventStream};
use jiff::tz::TimeZone;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tonic::transport::Channel;

use super::Options;
use super::draw::draw;
use super::key::Key;
use super::link::Link;
use super::model::{Look, Message, Model, Order};
use super::terminal::Taken;
use super::update::Input;

/// How often ages are drawn anew if nothing happens.
const TICK: Duration = Duration::from_secs(1);

/// Messages that may wait to be drawn; beyond that the watch waits.
const QUEUE: usize = 64;

/// Shows the view until the reader quits, the terminal goes away, or somebody tells the process to end. The terminal is
/// as before when this returns, and also when it is dropped halfway.
pub(crate) async fn run(channel: Channel, options: Options) -> io::Result<()> {
    let clock = Arc::new(SystemClock::start());
    let mut model = Model::new(Look {
        coloured: options.coloured,
        zone: TimeZone::system(),
        server: options.target.server.clone(),
        notes: options.notes,
    });
    let link = Link {
        client: view_client(channel),
        clock: clock.clone(),
        target: options.target,
        every: options.every,
        author: options.author,
    };
    let (tell, mut told) = mpsc::channel::<Message>(QUEUE);
    // Dropping the set ends what is still under way.
    let mut tasks = JoinSet::new();
    tasks.spawn(link.clone().watch(tell.clone()));
    let (mut ended, mut hung_up, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?, signal(SignalKind::interrupt())?);
    let mut terminal = Taken::take()?;
    let mut events = EventStream::new();
    loop {
        terminal.draw(|frame| draw(frame, &model))?;
        let input = tokio::select! {
            event = events.next() => match event {
                Some(Ok(Event::Key(key))) => match Key::read(key) {
                    Some(key) => Input::Key(key),
                    None => continue,
                },
                Some(Ok(_)) => Input::Tick,
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
            Some(message) = told.recv() => Input::Message(message),
            () = clock.sleep(TICK) => Input::Tick,
            _ = ended.recv() => return Ok(()),
            _ = hung_up.recv() => return Ok(()),
            _ = interrupted.recv() => return Ok(()),
        };
        while tasks.try_join_next().is_some() {}
        for order in model.update(clock.now_unix_nanos(), input) {
            match order {
                Order::Quit => return Ok(()),
                Order::Ask(question) => {
                    let (link, tell) = (link.clone(), tell.clone());
                    tasks.spawn(async move {
                        let answered = link.ask(question).await;
                        // Nobody listens any more: the view is closed.
                        let _ = tell.send(answered).await;
                    });
                }
                Order::Tell(deed) => {
                    let (link, tell) = (link.clone(), tell.clone());
                    tasks.spawn(async move {
                        let told = link.tell(deed).await;
                        let _ = tell.send(told).await;
                    });
                }
            }
        }
    }
}
