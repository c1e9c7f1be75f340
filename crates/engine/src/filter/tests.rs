use proptest::prelude::*;

use super::*;

type Attributes = &'static [(&'static str, &'static str)];

const M1: Attributes = &[("lang", "en"), ("name", "com"), ("timezone", "UTC")];
const M2: Attributes = &[("lang", "en"), ("name", "net")];
const M3: Attributes = &[("lang", "fr"), ("name", "org")];
const M4: Attributes = &[("name", "co")];
/// Keys and values that need quotes or escapes, and an empty value.
const M5: Attributes = &[
    ("a b", "x\"y\\z"),
    ("empty", ""),
    ("AND", "é"),
    ("a-b", "A"),
];

/// Each valid filter with the messages, of the five above, that pass it.
const VALID: &[(&str, &[usize])] = &[
    ("", &[1, 2, 3, 4, 5]),
    ("attributes:timezone", &[1]),
    ("NOT attributes:timezone", &[2, 3, 4, 5]),
    ("-attributes:timezone", &[2, 3, 4, 5]),
    (r#"attributes.lang="en""#, &[1, 2]),
    (r#"attributes.lang != "en""#, &[3, 4, 5]),
    (r#"NOT attributes.lang = "en""#, &[3, 4, 5]),
    (r#"hasPrefix(attributes.name,"co")"#, &[1, 4]),
    (r#"NOT hasPrefix(attributes.name,"co")"#, &[2, 3, 5]),
    (r#"attributes:lang AND attributes.name="com""#, &[1]),
    (r#"attributes.name="com" OR attributes.name="net""#, &[1, 2]),
    (
        r#"(attributes.lang="en" OR attributes.lang="fr") AND NOT attributes.name="com""#,
        &[2, 3],
    ),
    (
        "attributes:lang AND attributes:name AND attributes:timezone",
        &[1],
    ),
    (
        r#"attributes.name="co" OR attributes:timezone OR attributes:empty"#,
        &[1, 4, 5],
    ),
    (r#"NOT (attributes:lang OR attributes:empty)"#, &[4]),
    ("-(attributes:lang AND attributes:timezone)", &[2, 3, 4, 5]),
    ("((attributes:timezone))", &[1]),
    ("NOT (NOT attributes:timezone)", &[1]),
    ("attributes:empty", &[5]),
    (r#"attributes.empty = """#, &[5]),
    (r#"hasPrefix(attributes.empty, "")"#, &[5]),
    (r#"hasPrefix ( attributes . name , "n" )"#, &[2]),
    (
        "  attributes\t: lang\n AND\r\nattributes . name != \"org\" ",
        &[1, 2],
    ),
    (r#"attributes:"a b""#, &[5]),
    (r#"attributes."a b" = "x\"y\\z""#, &[5]),
    (r#"attributes.lang = "\u0065\x6e""#, &[1, 2]),
    (r#"attributes.name = "\143om""#, &[1]),
    (r#"attributes.AND = "\u00e9""#, &[5]),
    (r#"attributes.AND = "é""#, &[5]),
    (r#"attributes.a-b = "A""#, &[5]),
    (r#"attributes.a-b = "a""#, &[]),
    ("attributes:Lang", &[]),
    (r#"attributes.lang="en"AND-attributes:timezone"#, &[2]),
    (r#"attributes.lang="en" AND NOT(attributes:timezone)"#, &[2]),
    (
        r#"(attributes:lang AND attributes.name="net") OR (attributes:name AND -attributes:lang)"#,
        &[2, 4],
    ),
];

/// Each text that is no filter, with the offset at which it goes wrong.
const INVALID: &[(&str, usize)] = &[
    (
        r#"attributes.lang="en" AND attributes:name OR attributes:x"#,
        41,
    ),
    (
        r#"attributes.lang="en" OR attributes:name AND attributes:x"#,
        40,
    ),
    (r#"lang="en""#, 0),
    ("attributes.lang=en", 16),
    (r#"attributes.lang="en" and attributes:name"#, 21),
    (r#"hasSuffix(attributes.lang,"n")"#, 0),
    (r#"attributes.lang >"a""#, 16),
    (r#"data="x""#, 0),
    ("(attributes:lang", 16),
    ("attributes:lang)", 15),
    ("attributes.lang = attributes.name", 18),
    ("attributes.lang = 5", 18),
    ("attributes.lang = true", 18),
    ("attributes.lang = 'en'", 18),
    ("attributes.lang", 15),
    ("attributes:", 11),
    ("attributes", 10),
    ("attributesX:lang", 0),
    ("attributes:lang attributes:name", 16),
    ("attributes:lang AND", 19),
    ("AND attributes:lang", 0),
    ("attributes:lang AND OR attributes:name", 20),
    ("NOT NOT attributes:lang", 4),
    ("--attributes:lang", 1),
    ("not attributes:lang", 0),
    (r#"hasprefix(attributes.lang,"n")"#, 0),
    (r#"hasPrefix(attributes:lang,"n")"#, 20),
    (r#"hasPrefix(attributes.lang)"#, 25),
    (r#"attributes.lang = "en"#, 21),
    (r#"attributes.lang = "\n""#, 19),
    (r#"attributes.lang = "\u00""#, 19),
    (r#"attributes.lang = "\x+1""#, 19),
    (r#"attributes.lang = "\ud800""#, 19),
    (r#"attributes.lang = "\18""#, 19),
    ("attributes:é", 11),
    ("()", 1),
    (" ", 1),
    (r#"attributes.lang == "en""#, 17),
    (r#""en" = attributes.lang"#, 0),
];

fn passes(filter: &Filter, attributes: Attributes) -> bool {
    filter.matches(&|wanted| {
        let found = attributes.iter().find(|(key, _)| *key == wanted);
        found.map(|(_, value)| *value)
    })
}

#[test]
fn valid_filters_pass_exactly_the_listed_messages() {
    for (text, expected) in VALID {
        let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let messages = [(1, M1), (2, M2), (3, M3), (4, M4), (5, M5)];
        let passed: Vec<usize> = messages
            .iter()
            .filter(|(_, attributes)| passes(&filter, attributes))
            .map(|(number, _)| *number)
            .collect();
        assert_eq!(passed, *expected, "{text}");
    }
}

#[test]
fn invalid_filters_are_refused_where_they_go_wrong() {
    for (text, expected) in INVALID {
        match Filter::parse(text) {
            Err(InvalidFilter::Unexpected { at, .. } | InvalidFilter::Mixed { at }) => {
                assert_eq!(at, *expected, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn an_error_says_where_and_what() {
    let error = |text| Filter::parse(text).unwrap_err().to_string();
    assert_eq!(
        error("attributes.lang > \"a\""),
        r#"the filter is invalid at byte 16: expected "=" or "!=""#
    );
    assert_eq!(
        error("attributes:a AND attributes:b OR attributes:c"),
        "the filter is invalid at byte 30: AND and OR can only be combined with parentheses"
    );
}

#[test]
fn a_filter_has_at_most_256_bytes() {
    let of_bytes = |bytes: usize| format!("attributes:{}", "k".repeat(bytes - 11));
    assert!(Filter::parse(&of_bytes(256)).is_ok());
    assert_eq!(
        Filter::parse(&of_bytes(257)),
        Err(InvalidFilter::TooLong { bytes: 257 })
    );
}

#[test]
fn the_deepest_nesting_that_fits_is_read() {
    let text = format!("{}attributes:k{}", "(".repeat(122), ")".repeat(122));
    assert_eq!(text.len(), 256);
    assert!(Filter::parse(&text).is_ok());
}

/// Writes an expression so that parsing gives it back.
fn print(expression: &Expression) -> String {
    let chain = |parts: &[Expression], operator: &str| {
        parts
            .iter()
            .map(print_operand)
            .collect::<Vec<_>>()
            .join(operator)
    };
    match expression {
        Expression::Has { key } => format!("attributes:{}", quote(key)),
        Expression::Equals { key, value } => {
            format!("attributes.{}={}", quote(key), quote(value))
        }
        Expression::HasPrefix { key, prefix } => {
            format!("hasPrefix(attributes.{},{})", quote(key), quote(prefix))
        }
        Expression::Not(inner) => format!("NOT {}", print_operand(inner)),
        Expression::All(parts) => chain(parts, " AND "),
        Expression::Any(parts) => chain(parts, " OR "),
    }
}

fn print_operand(expression: &Expression) -> String {
    match expression {
        Expression::Not(_) | Expression::All(_) | Expression::Any(_) => {
            format!("({})", print(expression))
        }
        _ => print(expression),
    }
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn expression() -> impl Strategy<Value = Expression> {
    let text = || r#"[a-c"\\é -]{0,3}"#;
    let leaf = prop_oneof![
        text().prop_map(|key| Expression::Has { key }),
        (text(), text()).prop_map(|(key, value)| Expression::Equals { key, value }),
        (text(), text()).prop_map(|(key, prefix)| Expression::HasPrefix { key, prefix }),
    ];
    leaf.prop_recursive(4, 6, 3, |inner| {
        prop_oneof![
            inner
                .clone()
                .prop_map(|inner| Expression::Not(Box::new(inner))),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Expression::All),
            prop::collection::vec(inner, 2..4).prop_map(Expression::Any),
        ]
    })
}

proptest! {
    #[test]
    fn parsing_reverses_printing(expression in expression()) {
        prop_assert_eq!(parse::whole(&print(&expression)), Ok(expression));
    }

    #[test]
    fn any_text_is_read_or_refused(text in r#"(attributes|hasPrefix|NOT|AND|OR|[-().:,=!"\\a é]){0,40}"#) {
        let _ = Filter::parse(&text);
    }
}
