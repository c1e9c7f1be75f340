//! What the leader wants done, and how its answers and deliveries reach the clients.

use std::time::Duration;

use engine::dispatch::{
    AckReply, Credit, Delivered as Sent, Forwarded, Input, ModifyReply, Output, PublishReply,
    SessionKind,
};
use model::SessionId;

use super::calls::Waiting;
use super::clients::{decode, source_of};
use super::consumer::{self, Act};
use super::frontend;
use super::{Cluster, Happening};
use crate::history::{Call, Delivered, DeliveryNumber, Subscription, What};

impl Cluster {
    pub(super) fn carry_out(&mut self, output: Output) {
        match output {
            Output::Propose { proposal, commands } => self.propose(proposal, commands),
            Output::AskRegistry {
                question, command, ..
            } => self.ask_registry(question, command),
            Output::Published { request, reply } => {
                let waiting = self.calls.answered(request);
                self.published(&waiting, reply);
            }
            Output::Acknowledged { request, replies } => {
                let Waiting::Acks(acks) = self.calls.answered(request) else {
                    panic!("{request:?} is no ack");
                };
                assert_eq!(acks.len(), replies.len(), "one reply an ack");
                for ((call, delivery), reply) in acks.into_iter().zip(replies) {
                    self.acknowledged(call, delivery, reply);
                }
            }
            Output::Modified { request, replies } => {
                let waiting = self.calls.answered(request);
                self.modified(&waiting, replies[0]);
            }
            Output::CatalogueLogged { request } => {
                if let Waiting::Catalogue(subscription) = self.calls.answered(request) {
                    self.catalogue_logged(subscription);
                }
            }
            Output::Offer { session, waiting } => {
                let credit = self.frontend.offer(session, waiting);
                self.grant(session, credit);
            }
            Output::Deliver {
                session,
                deliveries,
                granted,
            } => self.deliver(session, deliveries, granted),
            Output::Release { session, credit } => {
                let credit = self.frontend.release(session, credit);
                self.grant(session, credit);
            }
            Output::Opened {
                session,
                outstanding,
            } => self.frontend.opened(session, outstanding),
            Output::Properties { .. } => {}
            Output::Ended { session, .. } => self.ended(session),
            Output::KeyMoved { .. } | Output::Tell { .. } | Output::CompareCatalogue { .. } => {
                unreachable!("there is no other shard")
            }
            Output::Forward {
                forward,
                topic,
                message,
                ..
            } => {
                let wait = self.network();
                let result = self.bury(source_of(&topic), &message);
                let answer = Input::Forwarded { forward, result };
                self.plan_in(wait, Happening::Arrive(self.term, Box::new(answer)));
            }
            Output::WakeAt(at) => self.wake_at(at),
        }
    }

    fn grant(&mut self, session: SessionId, credit: Option<Credit>) {
        if let Some(credit) = credit {
            self.arrive(Input::Grant { session, credit });
        }
    }

    fn published(&mut self, waiting: &Waiting, reply: PublishReply) {
        let Waiting::Publish(call, count) = *waiting else {
            panic!("a publish is answered, but {waiting:?} waits");
        };
        self.answer(match reply {
            PublishReply::Stored { first } => What::PublishOk {
                call,
                ids: (0..count).map(|number| first.plus(number)).collect(),
            },
            PublishReply::Moved { .. } | PublishReply::Refused(_) => What::PublishFailed { call },
        });
    }

    fn acknowledged(&mut self, call: Call, delivery: DeliveryNumber, reply: AckReply) {
        match reply {
            AckReply::Acknowledged => self.answer(What::AckOk { call }),
            AckReply::Stale => self.answer(What::AckFailed { call }),
            // The key was released, which means that all of it was settled: a router would find no
            // owner, and answer so.
            AckReply::Elsewhere => self.answer(What::AckOk { call }),
            AckReply::Unordered | AckReply::Superseded | AckReply::Void => {
                self.answer(What::AckFailed { call });
                self.act_again(delivery);
            }
        }
    }

    /// The client was told to try again, and does, unless it has got the message anew.
    fn act_again(&mut self, delivery: DeliveryNumber) {
        let (subscription, id) = self.deliveries[&delivery];
        if self.latest.get(&(subscription, id.message)) == Some(&delivery) {
            let wait = self.chance.up_to(Duration::from_millis(300));
            self.plan_in(wait, Happening::Act(delivery, Act::Ack));
        }
    }

    fn modified(&mut self, waiting: &Waiting, reply: ModifyReply) {
        match (waiting, reply) {
            (Waiting::Nack(call), ModifyReply::Modified) => {
                self.answer(What::NackOk { call: *call });
            }
            (Waiting::Extend(call), ModifyReply::Modified) => {
                self.answer(What::ExtendOk { call: *call });
            }
            (_, ModifyReply::Stale | ModifyReply::Elsewhere) => {}
            _ => panic!("a deadline is modified, but {waiting:?} waits"),
        }
    }

    fn deliver(&mut self, session: SessionId, deliveries: Vec<Sent>, granted: Credit) {
        let is_open = self.frontend.deliver(session, granted, &deliveries);
        let is_empty = deliveries.is_empty();
        let kind = self.frontend.get(session).map(|pull| pull.kind);
        let mut returned = Vec::new();
        for sent in deliveries {
            let id = sent.ack;
            let delivery = self.deliver_one(session, sent);
            match is_open {
                true => self.consume(delivery),
                false => {
                    self.note(What::Returned { delivery });
                    returned.push(id);
                }
            }
        }
        if !returned.is_empty() {
            self.arrive(Input::CloseSession { session, returned });
        } else if kind == Some(SessionKind::Pull) && !is_empty {
            self.close(session);
        }
    }

    fn deliver_one(&mut self, session: SessionId, sent: Sent) -> DeliveryNumber {
        let (value, key) = decode(&sent.message);
        let delivery = DeliveryNumber(self.deliveries.len() as u64 + 1);
        let subscription = Subscription(sent.ack.subscription.0);
        let message = sent.ack.message;
        self.deliveries.insert(delivery, (subscription, sent.ack));
        self.latest.insert((subscription, message), delivery);
        self.messages.insert(value, message);
        let ack_deadline = self.subscriptions[&subscription].settings.ack_deadline;
        self.note(What::Delivered(Delivered {
            delivery,
            subscription,
            session: frontend::number(session),
            key,
            message,
            value,
            ack_deadline,
        }));
        delivery
    }

    /// The client has a delivery.
    fn consume(&mut self, delivery: DeliveryNumber) {
        let arrives = self.network();
        let (subscription, _) = self.deliveries[&delivery];
        let ack_deadline = self.subscriptions[&subscription].settings.ack_deadline;
        let acts = match self.is_draining {
            true => vec![(Duration::ZERO, Act::Ack)],
            false => consumer::acts(&self.plan.consumers, ack_deadline, &mut self.chance),
        };
        for (wait, act) in acts {
            self.plan_in(arrives + wait, Happening::Act(delivery, act));
        }
    }

    /// The leader has ended a session: its subscription is gone, or another stream of its client
    /// has taken over.
    fn ended(&mut self, session: SessionId) {
        if self.frontend.close(session) {
            let session = frontend::number(session);
            self.note(What::Closed { session });
        }
    }

    /// Stores a dead letter, or does not, or nobody knows.
    fn bury(&mut self, subscription: Subscription, message: &[u8]) -> Forwarded {
        let (value, _) = decode(message);
        let message = self.messages[&value];
        match self.chance.below(10) {
            0 => Forwarded::Unknown,
            1 => Forwarded::NoTopic,
            _ => {
                self.note(What::DeadLettered {
                    subscription,
                    message,
                });
                Forwarded::Stored
            }
        }
    }
}
