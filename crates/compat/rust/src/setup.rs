//! Topics and subscriptions over gRPC, for the scenarios to play on.
//!
//! The official Rust client administers by REST only. The scenarios that are about administration
//! use it, where the server speaks REST; the others are about messages, for which that client uses
//! gRPC, and must not depend on REST. The field numbers are those of Google's `pubsub.proto`.

use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{IntoRequest, Status};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, prost::Message)]
struct Topic {
    #[prost(string, tag = "1")]
    name: String,
}

/// What the scenarios set of a subscription.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Subscription {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub topic: String,
    #[prost(bool, tag = "10")]
    pub enable_message_ordering: bool,
    #[prost(string, tag = "12")]
    pub filter: String,
    #[prost(message, optional, tag = "13")]
    pub dead_letter_policy: Option<DeadLetterPolicy>,
    #[prost(bool, tag = "16")]
    pub enable_exactly_once_delivery: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DeadLetterPolicy {
    #[prost(string, tag = "1")]
    pub dead_letter_topic: String,
    #[prost(int32, tag = "2")]
    pub max_delivery_attempts: i32,
}

/// The request of each call that needs only the name of a resource.
#[derive(Clone, PartialEq, prost::Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
}

/// A client of the calls that make and delete resources.
pub struct Setup {
    channel: Channel,
}

impl Setup {
    pub async fn connect(endpoint: &str) -> Result<Self, tonic::transport::Error> {
        let channel = Channel::from_shared(endpoint.to_owned())
            .expect("a host and a port make a URI")
            .connect()
            .await?;
        Ok(Self { channel })
    }

    pub async fn create_topic(&self, name: String) -> Result<(), Status> {
        let _: Topic = self
            .call("/google.pubsub.v1.Publisher/CreateTopic", Topic { name })
            .await?;
        Ok(())
    }

    pub async fn create_subscription(&self, subscription: Subscription) -> Result<(), Status> {
        const METHOD: &str = "/google.pubsub.v1.Subscriber/CreateSubscription";
        let _: Subscription = self.call(METHOD, subscription).await?;
        Ok(())
    }

    /// The topic of a subscription.
    pub async fn topic_of(&self, subscription: &str) -> Result<String, Status> {
        const METHOD: &str = "/google.pubsub.v1.Subscriber/GetSubscription";
        let found: Subscription = self.call(METHOD, named(subscription)).await?;
        Ok(found.topic)
    }

    pub async fn delete_topic(&self, name: &str) -> Result<(), Status> {
        self.call("/google.pubsub.v1.Publisher/DeleteTopic", named(name))
            .await
    }

    pub async fn delete_subscription(&self, name: &str) -> Result<(), Status> {
        const METHOD: &str = "/google.pubsub.v1.Subscriber/DeleteSubscription";
        self.call(METHOD, named(name)).await
    }

    async fn call<Request, Response>(
        &self,
        method: &'static str,
        request: Request,
    ) -> Result<Response, Status>
    where
        Request: prost::Message + 'static,
        Response: prost::Message + Default + 'static,
    {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        client
            .ready()
            .await
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static(method);
        let codec = ProstCodec::<Request, Response>::default();
        let response = client.unary(request.into_request(), path, codec).await?;
        Ok(response.into_inner())
    }
}

fn named(name: &str) -> Named {
    Named {
        name: name.to_owned(),
    }
}
