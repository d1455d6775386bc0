//! Which replica of the coordinator to talk to: the one that leads. A follower names it; where nobody does, the next is tried.

use bigfleet_net::{DialError, TlsFiles, dial};
use bigfleet_proto::transport::LEADER_HEADER;
use tokio::sync::watch;
use tonic::Status;
use tonic::transport::Channel;

/// The replicas, and the way to the one that is thought to lead.
pub(crate) struct Leader {
    replicas: Vec<(String, Channel)>,
    at: usize,
    tls: Option<TlsFiles>,
    channel: watch::Sender<Channel>,
}

impl Leader {
    /// Of replicas at these addresses, separated by commas.
    pub(crate) fn among(addresses: &str, tls: Option<&TlsFiles>) -> Result<Self, DialError> {
        let addresses = addresses.split(',').map(str::trim).filter(|address| !address.is_empty());
        let replicas = addresses.map(|address| Ok((address.to_owned(), dial(address, tls)?)));
        let mut replicas: Vec<(String, Channel)> = replicas.collect::<Result<_, DialError>>()?;
        if replicas.is_empty() {
            replicas.push((String::new(), dial("", tls)?));
        }
        let channel = watch::Sender::new(replicas[0].1.clone());
        Ok(Self { replicas, at: 0, tls: tls.cloned(), channel })
    }

    /// The way to it.
    pub(crate) fn channel(&self) -> Channel {
        self.channel.borrow().clone()
    }

    /// The way to it, and to whoever leads after it.
    pub(crate) fn follow(&self) -> watch::Receiver<Channel> {
        self.channel.subscribe()
    }

    /// It does not lead, or is not there: goes to the one it names, or to the next.
    pub(crate) fn refused(&mut self, status: &Status) {
        let named = status.metadata().get(LEADER_HEADER).and_then(|named| named.to_str().ok());
        let channel = match named {
            Some(named) => match self.replicas.iter().position(|(address, _)| address == named) {
                Some(place) => {
                    self.at = place;
                    self.replicas[place].1.clone()
                }
                None => match dial(named, self.tls.as_ref()) {
                    Ok(channel) => channel,
                    Err(error) => {
                        tracing::warn!(%error, "the leader that a coordinator names cannot be dialled");
                        self.next()
                    }
                },
            },
            None => self.next(),
        };
        self.channel.send_replace(channel);
    }

    fn next(&mut self) -> Channel {
        self.at = (self.at + 1) % self.replicas.len();
        self.replicas[self.at].1.clone()
    }
}
