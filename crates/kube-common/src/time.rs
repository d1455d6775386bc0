//! Our clock's time in the forms Kubernetes has for it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::Timestamp;

/// An instant, cut to whole seconds as Kubernetes keeps them in most places.
pub fn time(unix_nanos: i64) -> Time {
    Time(Timestamp::from_second(unix_nanos.div_euclid(1_000_000_000)).unwrap_or(Timestamp::MAX))
}

/// An instant, cut to microseconds as Kubernetes keeps them in leases.
pub fn micro_time(unix_nanos: i64) -> MicroTime {
    MicroTime(Timestamp::from_microsecond(unix_nanos.div_euclid(1000)).unwrap_or(Timestamp::MAX))
}

/// The other way.
pub fn unix_nanos(time: &Time) -> i64 {
    i64::try_from(time.0.as_nanosecond()).unwrap_or(if time.0 > Timestamp::UNIX_EPOCH {
        i64::MAX
    } else {
        i64::MIN
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_cut_and_never_rounded_up() {
        let at = 1_700_000_000_987_654_321;
        assert_eq!(serde_json::to_value(time(at)).unwrap(), "2023-11-14T22:13:20Z");
        assert_eq!(serde_json::to_value(micro_time(at)).unwrap(), "2023-11-14T22:13:20.987654Z");
        assert_eq!(unix_nanos(&time(at)), 1_700_000_000_000_000_000);
        assert_eq!(unix_nanos(&Time(Timestamp::MAX)), i64::MAX);
        assert_eq!(unix_nanos(&Time(Timestamp::MIN)), i64::MIN);
    }
}
