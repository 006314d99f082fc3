//! The table of what hakmem counts, src/base/counters.def, as a Rust macro: there is one list of figures.
use std::fmt::Write;
use std::fs;
use std::path::Path;

pub fn write(table: &Path, output: &Path) {
    let text = fs::read_to_string(table)
        .unwrap_or_else(|error| panic!("hakmem-sys: cannot read {}: {error}", table.display()));
    let mut code = String::from(
        "/// Calls `$receive!` with the figures of hakmem's table, each a name with its meaning.\n\
         #[macro_export]\nmacro_rules! figures {\n($receive:ident) => { $receive! {\n",
    );
    for (section, entry) in [
        ("counters", "COUNTER("),
        ("classes", "CLASS_COUNTER("),
        ("totals", "TOTAL("),
    ] {
        writeln!(code, "{section} {{").expect("a String");
        for (name, unit, meaning) in text.lines().filter_map(|line| figure(line, entry)) {
            writeln!(code, "#[doc = \"{meaning} ({unit})\"] {name},").expect("a String");
        }
        code.push_str("}\n");
    }
    code.push_str("} };\n}\n");
    fs::write(output, code)
        .unwrap_or_else(|error| panic!("hakmem-sys: cannot write {}: {error}", output.display()));
}

/// Name, unit and meaning of `ENTRY(name, …"unit", "meaning")`; there are no quotes in the texts. `UNSTABLE_ENTRY` has a longer name.
fn figure<'a>(line: &'a str, entry: &str) -> Option<(String, &'a str, &'a str)> {
    let (prefix, line) = match line.strip_prefix("UNSTABLE_") {
        Some(rest) => ("unstable_", rest),
        None => ("", line),
    };
    let rest = line.strip_prefix(entry)?;
    let mut texts = rest.split('"');
    let name = texts.next()?.split(',').next()?;
    let unit = texts.next()?;
    let meaning = texts.nth(1)?;
    Some((format!("{prefix}{name}"), unit, meaning))
}
