//! The face: Pub/Sub v1 over gRPC; sessions and errors.
