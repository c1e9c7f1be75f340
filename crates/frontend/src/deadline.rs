//! The caller's deadline, as the `grpc-timeout` header carries it.

use std::time::Duration;

use tonic::metadata::MetadataMap;

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

#[cfg(test)]
mod tests {
    use super::*;

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
