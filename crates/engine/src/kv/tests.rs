use super::*;

struct Rows(BTreeMap<Vec<u8>, Bytes>);

impl View for Rows {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fault> {
        Ok(self.0.get(key).cloned())
    }

    fn scan<'a>(
        &'a self,
        from: &[u8],
        to: &[u8],
    ) -> Box<dyn Iterator<Item = Result<RawRow, Fault>> + 'a> {
        let rows = self.0.range(from.to_vec()..to.to_vec());
        Box::new(rows.map(|(key, value)| Ok((key.clone(), value.clone()))))
    }

    fn floor(&self, from: &[u8], at: &[u8]) -> Result<Option<RawRow>, Fault> {
        let rows = self.0.range(from.to_vec()..=at.to_vec());
        Ok(rows.last().map(|(key, value)| (key.clone(), value.clone())))
    }

    fn payload(&self, at: PayloadAt) -> Result<RunPayload, Fault> {
        Err(Fault::Missing(format!("payload {at:?}")))
    }
}

fn rows(names: &[&str]) -> Rows {
    Rows(
        names
            .iter()
            .map(|name| (name.as_bytes().to_vec(), Bytes::from("below")))
            .collect(),
    )
}

fn scanned(overlay: &Overlay<'_>) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let rows = overlay.scan(b"a", b"z").map(|row| row.unwrap());
    rows.map(|(key, value)| (text(&key), text(&value)))
        .collect()
}

#[test]
fn a_scan_sees_written_rows_and_not_deleted_ones() {
    let below = rows(&["b", "d", "f"]);
    let mut overlay = Overlay::new(&below);
    overlay.writes.insert(b"a".to_vec(), Some("above".into()));
    overlay.writes.insert(b"d".to_vec(), None);
    overlay.writes.insert(b"e".to_vec(), None);
    overlay.writes.insert(b"f".to_vec(), Some("above".into()));
    overlay.writes.insert(b"z".to_vec(), Some("above".into()));
    let expected = [("a", "above"), ("b", "below"), ("f", "above")];
    let expected: Vec<_> = expected
        .map(|(key, value)| (key.into(), value.into()))
        .into();
    assert_eq!(scanned(&overlay), expected);
    assert_eq!(overlay.get(b"d").unwrap(), None);
    assert_eq!(overlay.get(b"b").unwrap(), Some("below".into()));
}

#[test]
fn an_empty_range_has_no_rows() {
    let below = rows(&["b"]);
    assert_eq!(Overlay::new(&below).scan(b"c", b"a").count(), 0);
}

#[test]
fn the_floor_is_the_last_row_that_is_not_deleted() {
    let below = rows(&["b", "d", "f"]);
    let mut overlay = Overlay::new(&below);
    let floor = |overlay: &Overlay<'_>, from: &[u8], at: &[u8]| {
        overlay
            .floor(from, at)
            .unwrap()
            .map(|(key, _)| String::from_utf8(key).unwrap())
    };
    assert_eq!(floor(&overlay, b"a", b"e").as_deref(), Some("d"));
    overlay.writes.insert(b"d".to_vec(), None);
    assert_eq!(floor(&overlay, b"a", b"e").as_deref(), Some("b"));
    assert_eq!(floor(&overlay, b"c", b"e"), None);
    overlay.writes.insert(b"e".to_vec(), Some("above".into()));
    assert_eq!(floor(&overlay, b"a", b"e").as_deref(), Some("e"));
    assert_eq!(floor(&overlay, b"a", b"d").as_deref(), Some("b"));
}
