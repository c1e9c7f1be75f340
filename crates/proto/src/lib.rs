//! The wire: google.pubsub.v1, google.iam.v1 and orderly.cluster.v1.
