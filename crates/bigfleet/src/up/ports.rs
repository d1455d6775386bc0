//! Ports that move on by themselves when somebody else has them.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// How far a port may move.
const MOST_MOVES: u16 = 100;

/// A port on loopback and how it came to be that one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    what: &'static str,
    wanted: u16,
    tried: u16,
}

impl Port {
    /// `what` would like to listen on `wanted`; 0 takes any.
    pub(crate) fn new(what: &'static str, wanted: u16) -> Self {
        Self { what, wanted, tried: wanted }
    }

    /// Where to try.
    pub(crate) fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.tried).into()
    }

    /// Moves on by one if that may help.
    pub(crate) fn move_on(&mut self, error: &io::Error) -> bool {
        let may = error.kind() == io::ErrorKind::AddrInUse && self.tried - self.wanted < MOST_MOVES;
        let next = self.tried.checked_add(1).filter(|_| may);
        self.tried = next.unwrap_or(self.tried);
        next.is_some()
    }

    /// What to say if it is not the one that was wanted.
    pub(crate) fn moved(&self) -> Option<String> {
        (self.tried != self.wanted).then(|| self.to_string())
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "port {} is taken; {} is on {} instead", self.wanted, self.what, self.tried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_moves_on_and_says_so() {
        let taken = io::Error::from(io::ErrorKind::AddrInUse);
        let mut port = Port::new("the shard", 7780);
        assert_eq!((port.moved(), port.address().port()), (None, 7780));
        assert!(port.move_on(&taken) && port.move_on(&taken));
        assert_eq!(port.address(), "127.0.0.1:7782".parse().unwrap());
        assert_eq!(port.moved().as_deref(), Some("port 7780 is taken; the shard is on 7782 instead"));
    }

    #[test]
    fn other_errors_and_the_end_of_the_range_stop_it() {
        let taken = io::Error::from(io::ErrorKind::AddrInUse);
        let mut port = Port::new("the shard", 7780);
        assert!(!port.move_on(&io::Error::from(io::ErrorKind::PermissionDenied)));
        assert_eq!((0..200).filter(|_| port.move_on(&taken)).count(), 100);
        let mut last = Port::new("the shard", u16::MAX);
        assert!(!last.move_on(&taken));
    }
}
