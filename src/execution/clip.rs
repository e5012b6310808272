//! How a text that is over its cap is cut.

use unicode_segmentation::UnicodeSegmentation;

/// Cuts a text to `cap` grapheme clusters: the first four fifths of the cap and the last fifth, with a line between that
/// gives both lengths and comes on top of the cap. Nothing if the text is not over it.
pub(super) fn clip(text: &str, cap: usize) -> Option<String> {
    // No text has more clusters than bytes, and counting clusters is slow.
    if text.len() <= cap {
        return None;
    }
    let length = text.graphemes(true).count();
    if length <= cap {
        return None;
    }
    let head = four_fifths(cap);
    let left_out = length - cap;
    let mut starts = text.grapheme_indices(true).map(|(at, _)| at);
    // The text has more clusters than the cap, so the first of the two is inside it.
    let head_ends = starts.nth(head).unwrap_or(text.len());
    let tail_begins = starts.nth(left_out - 1).unwrap_or(text.len());
    let (head, tail) = (&text[..head_ends], &text[tail_begins..]);
    Some(format!("{head}\n[… truncated: {length} characters, {cap} of them kept …]\n{tail}"))
}

/// Written so that it cannot overflow.
const fn four_fifths(cap: usize) -> usize {
    cap - cap.div_ceil(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, cap: usize) -> (String, String, String) {
        let cut = clip(text, cap).unwrap();
        let (head, rest) = cut.split_once("\n[… ").unwrap();
        let (marker, tail) = rest.split_once(" …]\n").unwrap();
        (head.to_owned(), marker.to_owned(), tail.to_owned())
    }

    #[test]
    fn a_text_within_its_cap_stays() {
        for (text, cap) in [("", 1), ("a", 1), ("abc", 3), ("e\u{301}e\u{301}", 2), ("👨‍👩‍👧🇨🇭", 2)] {
            assert_eq!(clip(text, cap), None, "{text}");
        }
    }

    #[test]
    fn four_fifths_in_front_and_one_fifth_behind() {
        let text: String = ('a'..='z').collect();
        for (cap, head, tail) in [
            (1, "", "z"),
            (2, "a", "z"),
            (4, "abc", "z"),
            (5, "abcd", "z"),
            (6, "abcd", "yz"),
            (9, "abcdefg", "yz"),
            (10, "abcdefgh", "yz"),
            (25, "abcdefghijklmnopqrst", "vwxyz"),
        ] {
            let expected = (head.to_owned(), format!("truncated: 26 characters, {cap} of them kept"), tail.to_owned());
            assert_eq!(parts(&text, cap), expected, "{cap}");
            assert_eq!(head.len() + tail.len(), cap);
        }
    }

    #[test]
    fn what_a_reader_sees_as_one_character_is_not_cut() {
        let family = "👨‍👩‍👧‍👦";
        let (head, marker, tail) = parts(&family.repeat(7), 5);
        assert_eq!((head, tail), (family.repeat(4), family.to_owned()));
        assert!(marker.contains('7') && marker.contains('5'));
        let (head, _, tail) = parts("e\u{301}\r\n🇨🇭x🇦🇺n\u{303}", 5);
        assert_eq!((head.as_str(), tail.as_str()), ("e\u{301}\r\n🇨🇭x", "n\u{303}"));
        assert_eq!(parts("123456789→€漢字tail", 10).0, "12345678");
    }
}
