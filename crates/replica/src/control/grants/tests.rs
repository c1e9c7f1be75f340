use model::FormatLevel;

use super::*;

const A: NodeId = NodeId(1);
const B: NodeId = NodeId(2);
const LIFE: Boot = Boot(7);
const START: Timestamp = Timestamp(0);
const GRANTED: Renewing = Renewing::Answer(Granting::Granted(CATALOGUE_LEASE));
const NOT_NOW: Renewing = Renewing::Answer(Granting::NotNow);

fn after(seconds: u64) -> Timestamp {
    START.plus(Duration::from_secs(seconds))
}

fn renewal(node: NodeId, complete: u64) -> Renewal {
    let (boot, led) = (LIFE, Vec::new());
    Renewal {
        node,
        boot,
        knows: FormatLevel::KNOWN,
        complete,
        led,
    }
}

/// Two nodes with leases, complete up to entry 5.
fn two_nodes() -> Grants {
    let mut grants = Grants::presume([(A, LIFE), (B, LIFE)], 5, 5, 4, START);
    assert_eq!(grants.renew(&renewal(A, 5), START), GRANTED);
    assert_eq!(grants.renew(&renewal(B, 5), START), GRANTED);
    grants
}

#[test]
fn a_change_waits_for_every_holder() {
    let mut grants = two_nodes();
    grants.wait_for(6, START);
    grants.renew(&renewal(A, 6), START);
    assert_eq!(grants.settle(START), 5);
    assert_eq!(grants.settled(8), 5);
    grants.renew(&renewal(B, 6), START);
    assert_eq!(grants.settle(START), 6);
    assert_eq!(grants.settled(8), 8, "no change is in doubt");
}

#[test]
fn a_node_that_is_gone_holds_changes_up_for_one_lease() {
    let mut grants = two_nodes();
    grants.wait_for(6, START);
    for second in 0..10 {
        grants.renew(&renewal(A, 6), after(second));
    }
    assert_eq!(grants.settle(after(9)), 5);
    let end = grants.next_end(after(9)).expect("B holds the change up");
    assert!(end > after(10), "a lease is over late rather than early");
    assert_eq!(grants.settle(end), 6);
    grants.wait_for(7, end);
    grants.renew(&renewal(A, 7), end);
    assert_eq!(grants.settle(end), 7, "B holds nothing up any more");
}

#[test]
fn a_refused_sleep_is_proposed_again_after_a_pause() {
    let mut grants = two_nodes();
    let end = grants.next_end(after(10)).expect("leases run out");
    assert_eq!(grants.doze(end).len(), 2);
    grants.not_slept(B, LIFE, end);
    assert_eq!(grants.doze(end), [], "not at once, and not without end");
    let again = grants.next_end(end).expect("once more");
    assert!(again > end);
    assert_eq!(grants.doze(again), [(B, LIFE)]);
}

#[test]
fn a_node_that_is_gone_falls_asleep_when_its_lease_has_run_out() {
    let mut grants = two_nodes();
    for second in 0..10 {
        grants.renew(&renewal(A, 5), after(second));
    }
    assert_eq!(grants.doze(after(10)), []);
    let end = grants.next_end(after(10)).expect("B's lease runs out");
    assert_eq!(grants.doze(end), [(B, LIFE)]);
    assert_eq!(grants.doze(end), [], "it is proposed once");
    // It is back, but the log will say that it has no lease: it must not get one meanwhile.
    assert_eq!(grants.renew(&renewal(B, 5), end), NOT_NOW);
    grants.slept(B, LIFE);
    assert_eq!(grants.renew(&renewal(B, 5), end), Renewing::Wake);
    grants.woken(B, LIFE, true, end);
    assert_eq!(grants.renew(&renewal(B, 5), end), GRANTED);
}

#[test]
fn a_node_that_is_not_known_to_be_awake_gets_no_lease() {
    let mut grants = Grants::presume([], 5, 5, 4, START);
    assert_eq!(grants.renew(&renewal(A, 5), START), Renewing::Wake);
    assert_eq!(
        grants.renew(&renewal(A, 5), START),
        NOT_NOW,
        "it is asked once"
    );
    grants.woken(A, LIFE, false, START);
    assert_eq!(grants.renew(&renewal(A, 5), START), Renewing::Wake);
    grants.woken(A, LIFE, true, START);
    assert_eq!(grants.doze(after(9)), [], "it has time to ask");
    assert_eq!(grants.renew(&renewal(A, 5), after(9)), GRANTED);
}

#[test]
fn a_node_behind_an_answer_gets_no_lease() {
    let mut grants = two_nodes();
    grants.wait_for(6, START);
    grants.renew(&renewal(A, 6), after(20));
    assert_eq!(grants.settle(after(20)), 6);
    assert_eq!(grants.renew(&renewal(B, 5), after(20)), NOT_NOW);
    assert_eq!(grants.renew(&renewal(B, 6), after(20)), GRANTED);
}

#[test]
fn a_node_that_does_not_get_on_loses_its_lease() {
    let mut grants = two_nodes();
    grants.wait_for(6, after(1));
    assert_eq!(grants.renew(&renewal(B, 5), after(2)), GRANTED);
    assert_eq!(grants.renew(&renewal(B, 5), after(3)), NOT_NOW);
    assert_eq!(grants.renew(&renewal(B, 6), after(4)), GRANTED);
}

#[test]
fn a_new_leader_presumes_leases_of_the_one_before() {
    let mut grants = Grants::presume([(A, LIFE), (B, LIFE)], 5, 2, 4, START);
    assert_eq!(
        grants.settled(5),
        2,
        "entries 3 and 4 may be news to someone"
    );
    grants.renew(&renewal(A, 9), START);
    assert_eq!(grants.settle(START), 0, "nothing is known of B");
    // B has a lease, even though it gets no other now.
    assert_eq!(grants.renew(&renewal(B, 3), START), NOT_NOW);
    assert_eq!(grants.settle(START), 3);
    assert_eq!(grants.settled(5), 3, "everyone has entry 3");
    assert_eq!(grants.settle(after(11)), u64::MAX);
    assert_eq!(grants.settled(5), 5);
}

#[test]
fn a_lease_that_is_given_up_holds_nothing_up() {
    let mut grants = two_nodes();
    grants.wait_for(6, START);
    grants.renew(&renewal(A, 6), START);
    assert!(!grants.release(B, Boot(8), START));
    assert_eq!(grants.settle(START), 5, "that is another life of the node");
    assert!(grants.release(B, LIFE, START));
    assert_eq!(grants.settle(START), 6);
    assert_eq!(grants.renew(&renewal(B, 6), START), NOT_NOW);
}

#[test]
fn a_lease_ends_with_its_process() {
    let mut grants = two_nodes();
    grants.wait_for(6, START);
    grants.renew(&renewal(A, 6), START);
    let restarted = Renewal {
        boot: Boot(8),
        ..renewal(B, 3)
    };
    assert_eq!(grants.renew(&restarted, START), Renewing::Wake);
    assert_eq!(grants.settle(START), 6);
    grants.woken(B, Boot(8), true, START);
    assert_eq!(grants.renew(&restarted, START), NOT_NOW);
    let late = Renewing::Answer(Granting::Superseded(Boot(8)));
    assert_eq!(grants.renew(&renewal(B, 9), START), late);
}
