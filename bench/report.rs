//! `BENCHMARKS.md`.

/// The file, from the sections of one run.
pub(crate) fn whole(sections: &str) -> String {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let model = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model =
        model.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, model)| model);
    let (model, version) = (model.unwrap_or("unknown"), env!("CARGO_PKG_VERSION"));
    format!(
        "# Benchmarks\n\nMeasured by `script/bench`, which wrote this file: Toolhook {version}, release build, {processors} processors \
         ({model}). Everything that is compared was measured in one run, in turns, on one machine; the ratios are what carries over to \
         another. `script/bench --quick` prints the same in under two minutes. nginx has to be installed for the comparisons with it.\n\n\
         {sections}"
    )
}
