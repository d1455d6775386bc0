//! Events: sentences on an object that `kubectl describe` shows.
//!
//! An event's name is made from what it says. Saying it again, also after a restart, finds it there and adds nothing.

use bigfleet_net::Clock;
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use xxhash_rust::xxh3::xxh3_64;

use crate::time::time;

/// The server refuses longer ones.
const MESSAGE_BYTES: usize = 1024;
/// Leaves room for the hash within a name's 253.
const NAME_BYTES: usize = 230;

/// Whether somebody should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// For the record.
    Normal,
    /// Somebody should look.
    Warning,
}

/// What is to be said.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// About which object. Its uid tells it from others of the same name.
    pub about: ObjectReference,
    /// Whether somebody should look.
    pub severity: Severity,
    /// One word for programs.
    pub reason: &'static str,
    /// A sentence for people. Cut where the server would refuse it.
    pub message: String,
}

/// Says it, once.
pub async fn announce(
    client: &Client,
    clock: &dyn Clock,
    component: &str,
    announcement: &Announcement,
) -> kube::Result<()> {
    let event = event(announcement, component, clock.now_unix_nanos());
    // Events about objects without a namespace live in the default one.
    let namespace = event.metadata.namespace.clone().unwrap_or_default();
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    match events.create(&PostParams::default(), &event).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        done => done.map(drop),
    }
}

fn event(announcement: &Announcement, component: &str, now_unix_nanos: i64) -> Event {
    let Announcement { about, severity, reason, message } = announcement;
    let namespace =
        about.namespace.clone().filter(|name| !name.is_empty()).unwrap_or_else(|| "default".into());
    let said = format!(
        "{}\0{}\0{reason}\0{message}",
        about.kind.as_deref().unwrap_or(""),
        about.uid.as_deref().unwrap_or("")
    );
    let subject = cut(about.name.as_deref().unwrap_or("unnamed"), NAME_BYTES).trim_end_matches(['.', '-']);
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{subject}.{:016x}", xxh3_64(said.as_bytes()))),
            namespace: Some(namespace),
            ..ObjectMeta::default()
        },
        involved_object: about.clone(),
        type_: Some(match severity {
            Severity::Normal => "Normal".into(),
            Severity::Warning => "Warning".into(),
        }),
        reason: Some((*reason).into()),
        message: Some(cut(message, MESSAGE_BYTES).into()),
        source: Some(EventSource { component: Some(component.into()), host: None }),
        first_timestamp: Some(time(now_unix_nanos)),
        last_timestamp: Some(time(now_unix_nanos)),
        count: Some(1),
        ..Event::default()
    }
}

/// The longest beginning within so many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str, uid: &str, message: &str) -> Announcement {
        Announcement {
            about: ObjectReference {
                kind: Some("Pod".into()),
                name: Some(name.into()),
                namespace: Some("shop".into()),
                uid: Some(uid.into()),
                ..ObjectReference::default()
            },
            severity: Severity::Warning,
            reason: "NotCarried",
            message: message.into(),
        }
    }

    #[test]
    fn the_same_sentence_has_the_same_name_and_another_does_not() {
        let name = |a: &Announcement, at| event(a, "test", at).metadata.name.unwrap();
        let first = about("web-1", "u1", "m");
        assert_eq!(name(&first, 1), name(&first, 2));
        assert_ne!(name(&first, 1), name(&about("web-1", "u1", "n"), 1));
        assert_ne!(name(&first, 1), name(&about("web-1", "u2", "m"), 1), "another pod of that name");
    }

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        let long = event(&about(&"n-".repeat(120), "u", &"é".repeat(1000)), "test", 0);
        assert!(long.metadata.name.unwrap().len() <= 253);
        assert_eq!(long.message.unwrap(), "é".repeat(512));
    }
}
