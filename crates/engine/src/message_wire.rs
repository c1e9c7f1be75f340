//! The few fields of an encoded `google.pubsub.v1.PubsubMessage` that the engine looks at. It stays
//! the bytes that the client sent: attributes are read in place, and added by appending.
//!
//! Fields by number: data 1, attributes 2 (a map of strings, each entry a message with key 1 and
//! value 2), ordering_key 5.

use bytes::{BufMut, Bytes, BytesMut};
use model::{SubscriptionName, Timestamp};

const ATTRIBUTES: u64 = 2;
const ORDERING_KEY: u64 = 5;
const ENTRY_KEY: u64 = 1;
const ENTRY_VALUE: u64 = 2;

/// Wire type of a number of variable length.
const VARINT: u64 = 0;
/// Wire type of eight bytes.
const FIXED_64: u64 = 1;
/// Wire type of bytes with their length.
const BYTES: u64 = 2;
/// Wire type of four bytes.
const FIXED_32: u64 = 5;

/// The value of an attribute. Of several entries with one key the last one counts, as in protobuf.
#[must_use]
pub fn attribute<'m>(message: &'m [u8], key: &str) -> Option<&'m str> {
    let entries = fields(message).filter(|(number, _)| *number == ATTRIBUTES);
    let with_key = entries.filter(|(_, entry)| last_text(entry, ENTRY_KEY) == key);
    with_key
        .last()
        .map(|(_, entry)| last_text(entry, ENTRY_VALUE))
}

/// The ordering key; empty for none.
#[must_use]
pub fn ordering_key(message: &[u8]) -> &str {
    last_text(message, ORDERING_KEY)
}

/// The message with the attributes of a dead letter.
#[must_use]
pub fn dead_letter(
    message: &[u8],
    source: &SubscriptionName,
    published: Timestamp,
    attempts: u32,
) -> Bytes {
    let mut out = BytesMut::from(message);
    let mut add = |key: &str, value: &str| {
        let key = format!("CloudPubSubDeadLetterSource{key}");
        append_attribute(&mut out, &key, value);
    };
    add("DeliveryCount", &attempts.to_string());
    add("Subscription", source.id());
    add("SubscriptionProject", source.project().as_str());
    add("TopicPublishTime", &rfc_3339(published));
    out.freeze()
}

/// Adds an attribute, which overrules one with the same key.
fn append_attribute(out: &mut BytesMut, key: &str, value: &str) {
    let mut entry = BytesMut::new();
    append_bytes(&mut entry, ENTRY_KEY, key.as_bytes());
    append_bytes(&mut entry, ENTRY_VALUE, value.as_bytes());
    append_bytes(out, ATTRIBUTES, &entry);
}

fn append_bytes(out: &mut BytesMut, number: u64, bytes: &[u8]) {
    append_varint(out, number << 3 | BYTES);
    append_varint(out, bytes.len() as u64);
    out.put_slice(bytes);
}

fn append_varint(out: &mut BytesMut, mut number: u64) {
    while number >= 0x80 {
        out.put_u8(number as u8 | 0x80);
        number >>= 7;
    }
    out.put_u8(number as u8);
}

/// The last field of this number as text; empty if there is none. Clients' texts were checked when
/// they came in.
fn last_text(message: &[u8], number: u64) -> &str {
    let found = fields(message).filter(|(at, _)| *at == number).last();
    let bytes = found.map_or(&[][..], |(_, bytes)| bytes);
    std::str::from_utf8(bytes).unwrap_or("")
}

/// The fields of a message that are bytes, in order; ends where the encoding does not go on.
fn fields(message: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let mut rest = message;
    std::iter::from_fn(move || {
        loop {
            let tag = take_varint(&mut rest)?;
            match tag & 7 {
                BYTES => {
                    let length = usize::try_from(take_varint(&mut rest)?).ok()?;
                    return Some((tag >> 3, take(&mut rest, length)?));
                }
                VARINT => drop(take_varint(&mut rest)?),
                FIXED_64 => drop(take(&mut rest, 8)?),
                FIXED_32 => drop(take(&mut rest, 4)?),
                _ => return None,
            }
        }
    })
}

fn take<'m>(rest: &mut &'m [u8], length: usize) -> Option<&'m [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *take(rest, 1)?.first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// A moment as in `2024-05-01T10:11:12.345+00:00`.
fn rfc_3339(at: Timestamp) -> String {
    let seconds = at.seconds();
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    let millis = at.nanos() / 1_000_000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}+00:00")
}

/// Year, month and day of a number of days since 1970. Counts in eras of 400 years that begin in
/// March, so that leap days come last (Hinnant, "chrono-compatible low-level date algorithms").
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(attributes: &[(&str, &str)], ordering_key: &str) -> Bytes {
        let mut out = BytesMut::new();
        append_bytes(&mut out, 1, b"data");
        for (key, value) in attributes {
            append_attribute(&mut out, key, value);
        }
        append_bytes(&mut out, ORDERING_KEY, ordering_key.as_bytes());
        out.freeze()
    }

    #[test]
    fn attributes_are_found_and_the_last_one_counts() {
        let message = message(&[("a", "1"), ("b", ""), ("a", "2")], "key");
        assert_eq!(attribute(&message, "a"), Some("2"));
        assert_eq!(attribute(&message, "b"), Some(""));
        assert_eq!(attribute(&message, "c"), None);
        assert_eq!(ordering_key(&message), "key");
    }

    #[test]
    fn other_fields_are_passed() {
        // Field 9 as a varint, 10 as 64 bits, 11 as 32 bits; then an attribute.
        let mut bytes = vec![
            0x48, 0x96, 0x01, 0x51, 1, 2, 3, 4, 5, 6, 7, 8, 0x5d, 1, 2, 3, 4,
        ];
        bytes.extend_from_slice(&message(&[("a", "1")], ""));
        assert_eq!(attribute(&bytes, "a"), Some("1"));
    }

    #[test]
    fn a_dead_letter_says_where_it_comes_from() {
        let source = SubscriptionName::parse("projects/p1/subscriptions/source").unwrap();
        let published = Timestamp(1_714_558_272_345_678_901);
        let letter = dead_letter(&message(&[("a", "1")], "k"), &source, published, 5);
        let expected = [
            ("a", "1"),
            ("CloudPubSubDeadLetterSourceDeliveryCount", "5"),
            ("CloudPubSubDeadLetterSourceSubscription", "source"),
            ("CloudPubSubDeadLetterSourceSubscriptionProject", "p1"),
            (
                "CloudPubSubDeadLetterSourceTopicPublishTime",
                "2024-05-01T10:11:12.345+00:00",
            ),
        ];
        for (key, value) in expected {
            assert_eq!(attribute(&letter, key), Some(value), "{key}");
        }
        assert_eq!(ordering_key(&letter), "k");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, expected) in [
            (0, (1970, 1, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (19_844, (2024, 5, 1)),
            (20_454, (2026, 1, 1)),
        ] {
            assert_eq!(date(days), expected);
        }
    }

    #[test]
    fn any_bytes_are_read_without_panic() {
        let whole = message(&[("a", "1"), ("b", "2")], "key");
        for end in 0..whole.len() {
            assert_ne!(attribute(&whole[..end], "b"), Some("other"));
        }
        assert_eq!(attribute(&[0xff; 32], "a"), None);
    }
}
