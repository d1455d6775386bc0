//! Our clock's time in the forms Kubernetes has for it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::civil::DateTime;
use k8s_openapi::jiff::tz::TimeZone;
use kube::Client;
use kube::client::Body;

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

/// What time the API server has, to the second: what it makes or ends by itself goes by its clock and not by ours. `None` if
/// it does not answer, or does not say.
pub async fn server_unix_nanos(client: &Client) -> Option<i64> {
    let request = http::Request::get("/version").body(Body::empty()).ok()?;
    let answer = client.send(request).await.ok()?;
    let date = answer.headers().get(http::header::DATE)?.to_str().ok()?;
    Some(unix_nanos(&Time(http_date(date)?)))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form servers write.
fn http_date(text: &str) -> Option<Timestamp> {
    let civil = DateTime::strptime("%a, %d %b %Y %H:%M:%S GMT", text).ok()?;
    civil.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
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

    #[test]
    fn dates_are_read_as_servers_write_them() {
        let read = |text: &str| http_date(text).map(Timestamp::as_second);
        assert_eq!(read("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        for bad in
            ["", "Sun, 06 Nov 1994 08:49:37 CET", "1994-11-06T08:49:37Z", "Sun, 31 Feb 1994 08:49:37 GMT"]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
