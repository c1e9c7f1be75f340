//! The longest Rust file and the longest function may only shrink.

use toml::Table;

use crate::finding::Finding;
use crate::tree::Tree;

/// The file with the two limits.
pub(crate) const PATH: &str = "crates/xtask/ratchet.toml";

/// The limits are not lowered below these: an ordinary file or function needs no permission.
const ORDINARY: Lengths = Lengths {
    file: 600,
    function: 70,
};

/// Lengths in lines.
#[derive(Clone, Copy)]
struct Lengths {
    file: usize,
    function: usize,
}

/// Names every file and function over its limit.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let Some(limits) = tree.text(PATH).and_then(parse) else {
        let next = "give it the two lines `file = N` and `function = N`";
        return vec![Finding::new(PATH, 1, "the limits cannot be read", next)];
    };
    rust_files(tree)
        .flat_map(|(path, text)| check_file(path, text, limits))
        .collect()
}

/// The text of the limits lowered to the longest file and function there are, if that lowers one.
pub(crate) fn lowered(tree: &Tree) -> Option<String> {
    let text = tree.text(PATH)?;
    let limits = parse(text)?;
    let longest_file = rust_files(tree)
        .map(|(_, text)| text.lines().count())
        .max()?;
    let longest_function = rust_files(tree)
        .flat_map(|(_, text)| functions(text))
        .map(|function| function.length)
        .max()?;
    let file = limits.file.min(longest_file.max(ORDINARY.file));
    let function = limits.function.min(longest_function.max(ORDINARY.function));
    let new = text
        .replace(
            &format!("file = {}", limits.file),
            &format!("file = {file}"),
        )
        .replace(
            &format!("function = {}", limits.function),
            &format!("function = {function}"),
        );
    (new != text).then_some(new)
}

fn parse(text: &str) -> Option<Lengths> {
    let table: Table = text.parse().ok()?;
    let number = |name| usize::try_from(table.get(name)?.as_integer()?).ok();
    Some(Lengths {
        file: number("file")?,
        function: number("function")?,
    })
}

fn rust_files(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.files().filter(|(path, _)| path.ends_with(".rs"))
}

fn check_file(path: &str, text: &str, limits: Lengths) -> Vec<Finding> {
    let mut findings = Vec::new();
    let length = text.lines().count();
    if length > limits.file {
        let what = format!("{length} lines; the longest file may have {}", limits.file);
        findings.push(Finding::new(
            path,
            1,
            what,
            "split it by idea, one idea a file",
        ));
    }
    for function in functions(text).filter(|function| function.length > limits.function) {
        let what = format!(
            "{} has {} lines; the longest function may have {}",
            function.name, function.length, limits.function
        );
        let next = "keep the branches here and move straight work into named functions";
        findings.push(Finding::new(path, function.line, what, next));
    }
    findings
}

struct Function<'a> {
    name: &'a str,
    line: usize,
    length: usize,
}

/// The functions of a file in the layout of rustfmt, where a body ends at the first `}` that stands
/// as far to the right as its `fn` does.
fn functions(text: &str) -> impl Iterator<Item = Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    (0..lines.len()).filter_map(move |start| {
        let name = function_name(lines[start])?;
        let indent = lines[start].len() - lines[start].trim_start().len();
        let end = (start..lines.len()).find(|index| ends_function(lines[*index], indent))?;
        Some(Function {
            name,
            line: start + 1,
            length: end - start + 1,
        })
    })
}

fn ends_function(line: &str, indent: usize) -> bool {
    let own = line.len() - line.trim_start().len() == indent;
    own && (line.ends_with('}') || line.ends_with(';'))
}

/// The name of the function whose head starts on this line, if one does.
fn function_name(line: &str) -> Option<&str> {
    let (qualifiers, rest) = line.trim_start().split_once("fn ")?;
    let only_qualifiers = qualifiers.split_whitespace().all(|word| {
        word.starts_with("pub") || matches!(word, "async" | "const" | "extern" | "\"C\"")
    });
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (only_qualifiers && end > 0).then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::{PATH, check, functions, lowered};
    use crate::tree::Tree;

    const CODE: &str = "\
impl A {
    pub(crate) async fn long(&self) {
        if x {
            y();
        }
    }
}

trait B {
    fn declared(&self);
}

fn one_line() {}
// fn comment() {
let call = \"fn text\";
";

    #[test]
    fn measures_functions_from_head_to_brace() {
        let found: Vec<_> = functions(CODE)
            .map(|f| (f.name, f.line, f.length))
            .collect();
        assert_eq!(
            found,
            [("long", 2, 5), ("declared", 10, 1), ("one_line", 13, 1)]
        );
    }

    #[test]
    fn names_what_is_over_a_limit() {
        let limits = "file = 14\nfunction = 4\n";
        let found = check(&Tree::of(&[("a.rs", CODE), (PATH, limits)]));
        let lines: Vec<_> = found.iter().map(|finding| finding.line).collect();
        assert_eq!(lines, [1, 2]);
    }

    #[test]
    fn fix_lowers_to_the_longest_and_never_raises() {
        let long = format!("fn long() {{\n{}}}\n", "    step();\n".repeat(700));
        let tree = |limits| Tree::of(&[("a.rs", &long), (PATH, limits)]);
        assert_eq!(
            lowered(&tree("file = 800\nfunction = 900\n")).as_deref(),
            Some("file = 702\nfunction = 702\n")
        );
        assert_eq!(lowered(&tree("file = 10\nfunction = 10\n")), None);
    }
}
