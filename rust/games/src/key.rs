//! Position keys: a position spread over 128 bits.
//!
//! A game that packs its whole position into two words uses [`spread`], a bijection: two of its positions have equal
//! keys only if they are equal. What needs more words goes through [`digest`], where equal keys of unequal positions
//! are as rare as 128 bits allow. Any part of a key will do to choose a cache slot.

/// Tells the games apart: the top byte of a key's high word, or where a digest begins.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(crate) enum Tag {
    TicTacToe = 1,
    ConnectFour = 2,
    Pig = 3,
    DiceNim = 4,
    Hex = 5,
    Othello = 6,
    WallGame = 7,
    Chess = 8,
    Go = 9,
    Backgammon = 10,
    Breakthrough = 11,
    Gomoku = 12,
    Trictrac = 13,
    ConnectFourForThree = 14,
    Game2048 = 15,
    PegSolitaire = 16,
    KuhnPoker = 17,
    LeducPoker = 18,
    LiarsDice = 19,
    Maedn = 20,
    ChineseCheckers = 21,
    Blokus = 22,
}

/// The key of the position that `high` (its top byte free) and `low` describe in full.
#[inline]
pub(crate) fn spread(tag: Tag, high: u64, low: u64) -> u128 {
    debug_assert!(high >> 56 == 0, "the top byte of {high:#x} is the game's tag");
    let low = mix(low);
    // Both halves depend on `low`; xor with a known word keeps the map invertible.
    let high = mix((high | (tag as u64) << 56) ^ low);
    u128::from(high) << 64 | u128::from(low)
}

/// The key of the position that `words` describe in full, always the same number of them in a game.
#[inline]
pub(crate) fn digest(tag: Tag, words: &[u64]) -> u128 {
    let (mut high, mut low) = (tag as u64, 0);
    for &word in words {
        // The low half is a chain over the words, the high half one over the states of the low half: where words
        // differ both differ from then on, but for chances of 2^-64 each.
        low = mix(low ^ word);
        high = mix(high ^ low);
    }
    u128::from(high) << 64 | u128::from(low)
}

/// Two numbers for a word, to be summed where the order of the words says nothing.
#[inline]
pub(crate) fn scatter(word: u64) -> [u64; 2] {
    [mix(word), mix(!word)]
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014; Stafford's constants "Mix13"): invertible, because
/// each xor-shift and each multiplication by an odd number is.
#[inline]
pub(crate) const fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_every_word_changes_both_halves_of_a_digest() {
        let words = [1, 2, 3];
        let plain = digest(Tag::Hex, &words);
        for bit in 0..3 * 64 {
            let mut others = words;
            others[bit / 64] ^= 1 << (bit % 64);
            let other = digest(Tag::Hex, &others);
            assert_ne!(other as u64, plain as u64, "the low half, bit {bit}");
            assert_ne!(other >> 64, plain >> 64, "the high half, bit {bit}");
        }
        assert_ne!(digest(Tag::Othello, &words), plain);
    }
}
