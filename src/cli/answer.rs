//! What a command answers, on standard output.

use std::io::{self, Write};

use super::Failure;

/// Prints lines. Unlike `println!`, a reader that went away (`| head`) is a failure and no panic.
pub(super) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::because("cannot write the answer"))
}

/// Prints rows under a head, in columns as wide as they need.
pub(super) fn print_table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> Result<(), Failure> {
    let mut widths = head.map(str::len);
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: [&str; N]| {
        let padded: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        padded.join("  ").trim_end().to_owned()
    };
    let lines = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    print(&std::iter::once(line(head)).chain(lines).collect::<Vec<_>>().join("\n"))
}
