//! How much a client takes behind an answer. Beyond that its transport fails the call, or, with
//! Node, lets it wait for its deadline.

use model::limits::{ACK_FAILURES_BYTES_DEFAULT, ACK_FAILURES_BYTES_MAX, ACK_FAILURES_BYTES_NODE};
use tonic::metadata::MetadataMap;

/// Bytes of failed ids that the caller takes in the details of a status: all that a request can
/// hold where the caller is known to have raised the limits of its transport.
pub(crate) fn ack_failures_bytes_max(metadata: &MetadataMap) -> usize {
    let client = metadata.get("x-goog-api-client");
    let client = client.and_then(|client| client.to_str().ok()).unwrap_or("");
    let is_in = |language: &str| client.split(' ').any(|part| part.starts_with(language));
    if is_in("gl-node/") {
        ACK_FAILURES_BYTES_NODE
    } else if ["gl-go/", "gl-java/", "gl-python/", "gl-rust/"]
        .into_iter()
        .any(is_in)
    {
        ACK_FAILURES_BYTES_MAX
    } else {
        ACK_FAILURES_BYTES_DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_is_known_to_take_more_gets_more() {
        let of = |client: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert("x-goog-api-client", client.parse().unwrap());
            ack_failures_bytes_max(&metadata)
        };
        assert_eq!(
            ack_failures_bytes_max(&MetadataMap::new()),
            ACK_FAILURES_BYTES_DEFAULT
        );
        assert_eq!(of("gapic/1.0 not-gl-go/1"), ACK_FAILURES_BYTES_DEFAULT);
        assert_eq!(of("gl-node/22.1 gapic/5.3.1"), ACK_FAILURES_BYTES_NODE);
        assert_eq!(of("gl-python/3.11 grpc/1.70"), ACK_FAILURES_BYTES_MAX);
        assert_eq!(of("gapic/2.1 gl-java/21"), ACK_FAILURES_BYTES_MAX);
    }
}
