//! Who may call what. Under mutual TLS a certificate's one `bigfleet://` name decides; without it there are no roles: such a
//! server listens on the loopback, or its owner has said in so many words that it need not be guarded.

use bigfleet_net::{Peer, Role};
use tonic::{Extensions, Status};

/// What a call needs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Right<'a> {
    /// To look.
    Read,
    /// To change something.
    Command,
    /// To be this shard; an admin is not.
    Be(&'a str),
    /// To be any shard, or to look.
    ReadOrShard,
}

/// Refuses a caller that does not have the right.
pub(crate) fn check(extensions: &Extensions, right: Right<'_>) -> Result<(), Status> {
    let Some(role) = extensions.get::<Peer>().and_then(|peer| peer.role.as_ref()) else { return Ok(()) };
    let who = match (role, right) {
        (Ok(Role::Admin), Right::Read | Right::Command | Right::ReadOrShard)
        | (Ok(Role::ReadOnly), Right::Read | Right::ReadOrShard)
        | (Ok(Role::Shard(_)), Right::ReadOrShard) => return Ok(()),
        (Ok(Role::Shard(own)), Right::Be(shard)) if **own == *shard => return Ok(()),
        (Ok(other), _) => format!("the certificate is of {other}"),
        (Err(error), _) => error.to_string(),
    };
    let needed = match right {
        Right::Read => "reading needs the role bigfleet://readonly or bigfleet://admin".to_owned(),
        Right::Command => "this needs the role bigfleet://admin".to_owned(),
        Right::Be(shard) => format!("this needs the role bigfleet://shard/{shard}"),
        Right::ReadOrShard => {
            "this needs a role bigfleet://shard/<id>, bigfleet://readonly or bigfleet://admin".into()
        }
    };
    Err(Status::permission_denied(format!("{needed}; {who}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_opens_what_it_should() {
        let may = |role: Role, right| {
            let mut extensions = Extensions::default();
            extensions.insert(Peer {
                address: None,
                role: Some(Ok(role)),
                cut: bigfleet_net::Cut::default(),
            });
            check(&extensions, right).is_ok()
        };
        let shard = |id: &str| Role::Shard(id.into());
        assert!(may(shard("a"), Right::Be("a")) && !may(shard("b"), Right::Be("a")));
        assert!(!may(Role::Admin, Right::Be("a")), "an admin speaks for no shard");
        assert!(may(Role::Admin, Right::Command) && may(Role::Admin, Right::Read));
        assert!(!may(Role::ReadOnly, Right::Command) && may(Role::ReadOnly, Right::Read));
        assert!(!may(shard("a"), Right::Read) && may(shard("a"), Right::ReadOrShard));
        assert!(!may(Role::Cluster("c".into()), Right::ReadOrShard));
        assert!(
            check(&Extensions::default(), Right::Command).is_ok(),
            "without certificates there are no roles"
        );
    }
}
