//! The caller's deadline, as the `grpc-timeout` header carries it.

use std::time::Duration;

use model::limits::{CALL_WAIT_MARGIN, CALL_WAIT_MAX};
use tokio::time;
use tonic::metadata::MetadataMap;
use tonic::{Response, Status};

use crate::status::{Failure, Unavailable};

/// How long the caller waits, if it says so in a form that gRPC defines.
pub(crate) fn timeout(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    // The protocol allows eight digits.
    let amount: u64 = (digits.len() <= 8).then(|| digits.parse().ok()).flatten()?;
    match unit {
        "H" => Some(Duration::from_secs(amount * 3_600)),
        "M" => Some(Duration::from_secs(amount * 60)),
        "S" => Some(Duration::from_secs(amount)),
        "m" => Some(Duration::from_millis(amount)),
        "u" => Some(Duration::from_micros(amount)),
        "n" => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

/// Answers a call of the catalogue, whose caller waits for `timeout`; so long before that ends that
/// the answer arrives. Clients try UNAVAILABLE again, and not their own DEADLINE_EXCEEDED.
pub(crate) async fn in_time<T>(
    timeout: Option<Duration>,
    call: impl Future<Output = Result<T, Failure>>,
) -> Result<Response<T>, Status> {
    let wait = match timeout {
        Some(timeout) => timeout - CALL_WAIT_MARGIN.min(timeout / 8),
        None => CALL_WAIT_MAX,
    };
    match time::timeout(wait, call).await {
        Ok(answer) => Ok(Response::new(answer?)),
        Err(_) => Err(Failure::from(Unavailable::Catalogue).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_call_without_an_answer_ends_before_its_caller_does() {
        for (timeout, margin) in [(5_000, 250), (800, 100)] {
            let timeout = Duration::from_millis(timeout);
            let began = time::Instant::now();
            let answer = in_time::<()>(Some(timeout), std::future::pending()).await;
            assert_eq!(answer.unwrap_err().code(), tonic::Code::Unavailable);
            assert_eq!(timeout - began.elapsed(), Duration::from_millis(margin));
        }
        assert!(in_time::<()>(None, std::future::pending()).await.is_err());
        let answered = in_time(None, async { Ok(7) }).await;
        assert_eq!(answered.unwrap().into_inner(), 7);
    }

    fn read(text: &str) -> Option<Duration> {
        let mut metadata = MetadataMap::new();
        metadata.insert("grpc-timeout", text.parse().unwrap());
        timeout(&metadata)
    }

    #[test]
    fn every_unit_is_read() {
        assert_eq!(read("2H"), Some(Duration::from_secs(7_200)));
        assert_eq!(read("3M"), Some(Duration::from_secs(180)));
        assert_eq!(read("60S"), Some(Duration::from_secs(60)));
        assert_eq!(read("200m"), Some(Duration::from_millis(200)));
        assert_eq!(read("99999999u"), Some(Duration::from_micros(99_999_999)));
        assert_eq!(read("1n"), Some(Duration::from_nanos(1)));
    }

    #[test]
    fn other_texts_are_no_deadline() {
        for text in ["", "S", "5", "5s", "-1S", "123456789S"] {
            assert_eq!(read(text), None, "{text:?}");
        }
        assert_eq!(timeout(&MetadataMap::new()), None);
    }
}
