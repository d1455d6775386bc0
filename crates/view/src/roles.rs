//! Who may look and who may touch.
//!
//! Under mutual TLS the certificate's one `bigfleet://` name decides. Without it there are no roles: such a server
//! listens on the loopback, or its owner has said in so many words that it need not be guarded.

use bigfleet_net::{Peer, Role};
use tonic::{Extensions, Status};

/// What a call needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// To look.
    Read,
    /// To change something.
    Command,
}

/// The role of a caller: "admin", "readonly", or nothing where there are no roles. Refused if it does not give the right.
pub(crate) fn check(extensions: &Extensions, right: Right) -> Result<&'static str, Status> {
    let Some(role) = extensions.get::<Peer>().and_then(|peer| peer.role.as_ref()) else { return Ok("") };
    match (role, right) {
        (Ok(Role::Admin), _) => Ok("admin"),
        (Ok(Role::ReadOnly), Right::Read) => Ok("readonly"),
        (Ok(other), _) => Err(denied(&format!("the certificate is of {other}"), right)),
        (Err(error), _) => Err(denied(&error.to_string(), right)),
    }
}

/// Whether a caller may look at this cluster, or speak for it: the cluster itself, whoever commands all of them, and
/// for looking whoever may look at all of them.
pub(crate) fn check_own(extensions: &Extensions, right: Right, cluster: &str) -> Result<(), Status> {
    match extensions.get::<Peer>().and_then(|peer| peer.role.as_ref()) {
        Some(Ok(Role::Cluster(own))) if **own == *cluster => Ok(()),
        Some(Ok(Role::Cluster(own))) => Err(Status::permission_denied(format!(
            "the certificate is of bigfleet://cluster/{own}, which opens that cluster alone"
        ))),
        _ => check(extensions, right).map(drop),
    }
}

fn denied(who: &str, right: Right) -> Status {
    let needed = match right {
        Right::Read => "reading needs the role bigfleet://readonly or bigfleet://admin",
        Right::Command => "this needs the role bigfleet://admin",
    };
    Status::permission_denied(format!("{needed}; {who}"))
}

#[cfg(test)]
mod tests {
    use bigfleet_net::IdentityError;

    use super::*;

    fn caller(role: Option<Result<Role, IdentityError>>) -> Extensions {
        let mut extensions = Extensions::default();
        extensions.insert(Peer { address: None, role, cut: bigfleet_net::Cut::default() });
        extensions
    }

    #[test]
    fn each_role_opens_what_it_should() {
        let may = |role, right| check(&caller(Some(Ok(role))), right).ok();
        assert_eq!(may(Role::Admin, Right::Read), Some("admin"));
        assert_eq!(may(Role::Admin, Right::Command), Some("admin"));
        assert_eq!(may(Role::ReadOnly, Right::Read), Some("readonly"));
        assert_eq!(may(Role::ReadOnly, Right::Command), None);
        for other in [Role::Cluster("shop".into()), Role::Shard("s1".into())] {
            assert_eq!(may(other.clone(), Right::Read), None);
            assert_eq!(may(other, Right::Command), None);
        }
        assert_eq!(
            check(&caller(None), Right::Command).unwrap(),
            "",
            "without certificates there are no roles"
        );
        assert_eq!(check(&Extensions::default(), Right::Command).unwrap(), "");
    }

    #[test]
    fn a_cluster_opens_itself_and_no_other() {
        let shop = caller(Some(Ok(Role::Cluster("shop".into()))));
        assert!(check_own(&shop, Right::Command, "shop").is_ok());
        let refused = check_own(&shop, Right::Read, "ml").unwrap_err();
        assert_eq!(
            refused.message(),
            "the certificate is of bigfleet://cluster/shop, which opens that cluster alone"
        );
        let reader = caller(Some(Ok(Role::ReadOnly)));
        assert!(check_own(&reader, Right::Read, "shop").is_ok());
        assert!(check_own(&reader, Right::Command, "shop").is_err());
        assert!(check_own(&caller(Some(Ok(Role::Admin))), Right::Command, "shop").is_ok());
        assert!(check_own(&caller(None), Right::Command, "shop").is_ok());
    }

    #[test]
    fn a_refusal_says_what_is_needed() {
        let status = check(&caller(Some(Ok(Role::ReadOnly))), Right::Command).unwrap_err();
        assert_eq!(status.code(), tonic::Code::PermissionDenied);
        assert_eq!(
            status.message(),
            "this needs the role bigfleet://admin; the certificate is of bigfleet://readonly"
        );
        let status = check(&caller(Some(Err(IdentityError::Several(2)))), Right::Read).unwrap_err();
        assert_eq!(
            status.message(),
            "reading needs the role bigfleet://readonly or bigfleet://admin; the certificate carries 2 bigfleet:// URIs; \
             issue it with exactly one"
        );
    }
}
