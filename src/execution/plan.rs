//! Which calls run beside each other, and which alone.

use std::ops::Range;

/// Cuts a reply's calls into batches that run one after the other. `alone` says of each call, in order, whether it must
/// not run beside others. Neighbours that may share a batch do; every call is in exactly one, and the order is kept.
pub(super) fn batches(alone: impl IntoIterator<Item = bool>) -> Vec<Range<usize>> {
    let mut batches: Vec<Range<usize>> = Vec::new();
    let mut closed = true;
    for (index, alone) in alone.into_iter().enumerate() {
        match batches.last_mut() {
            Some(last) if !alone && !closed => last.end = index + 1,
            _ => batches.push(index..index + 1),
        }
        closed = alone;
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_runs_alone_is_a_barrier() {
        assert!(batches([]).is_empty());
        assert_eq!(
            batches([false, false, true, false, true, true, false, false]),
            [0..2, 2..3, 3..4, 4..5, 5..6, 6..8]
        );
    }

    /// Every pattern of up to ten calls.
    #[test]
    fn every_call_runs_once_in_order_and_as_wide_as_allowed() {
        for length in 0..=10_usize {
            for bits in 0..1_u32 << length {
                let alone: Vec<bool> = (0..length).map(|n| bits >> n & 1 == 1).collect();
                let plan = batches(alone.iter().copied());
                assert!(plan.iter().cloned().flatten().eq(0..length), "{alone:?}: {plan:?}");
                assert!(plan.iter().all(|batch| batch.len() == 1 || !alone[batch.clone()].contains(&true)));
                let joinable = |left: &Range<usize>, right: &Range<usize>| !alone[left.start] && !alone[right.start];
                assert!(!plan.windows(2).any(|pair| joinable(&pair[0], &pair[1])), "{alone:?}: {plan:?}");
            }
        }
    }
}
