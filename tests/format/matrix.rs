//! Which option each format can express: derived from the renderers, kept as a golden table.

use std::fmt::Write;
use toolhook::format::{FormatName, NAMES};

#[test]
fn option_by_format() {
    let columns: Vec<Vec<(String, bool)>> = FormatName::ALL.iter().map(|format| format.expresses()).collect();
    let mut table = format!("{:28}{}\n", "", NAMES.join(" "));
    for (row, (option, _)) in columns[0].iter().enumerate() {
        let _ = write!(table, "{option:28}");
        for (column, name) in columns.iter().zip(NAMES) {
            assert_eq!(&column[row].0, option);
            let _ = write!(table, "{:<width$}", if column[row].1 { "yes" } else { "-" }, width = name.len() + 1);
        }
        table = table.trim_end().to_owned() + "\n";
    }
    insta::assert_snapshot!(table);
}
