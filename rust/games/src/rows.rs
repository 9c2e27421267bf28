//! Boards as one word of text: rows from the top, `x` and `o`, numbers of empty cells, `/` between rows.

use std::fmt::Write as _;

use azpy_core::game::Player;

/// The pieces of a board of `cells` cells as that word.
pub(crate) fn to_rows(width: usize, cells: usize, piece: impl Fn(usize) -> Option<Player>) -> String {
    let mut text = String::new();
    let mut empty = 0;
    for cell in 0..cells {
        if cell > 0 && cell % width == 0 {
            text.push('/');
        }
        match piece(cell) {
            Some(player) => text.push(glyph(player)),
            None => empty += 1,
        }
        let row_ends = (cell + 1) % width == 0;
        if empty > 0 && (row_ends || piece(cell + 1).is_some()) {
            let _ = write!(text, "{empty}");
            empty = 0;
        }
    }
    text
}

/// `x` for player 0, `o` for player 1.
pub(crate) fn glyph(player: Player) -> char {
    match player {
        Player::Zero => 'x',
        Player::One => 'o',
    }
}

/// Reads what [`to_rows`] writes, on a board of `width` columns and `height` rows: calls `place` for each piece.
///
/// # Errors
/// What came and what was expected.
pub(crate) fn from_rows(
    width: usize,
    height: usize,
    text: &str,
    mut place: impl FnMut(Player, usize),
) -> Result<(), String> {
    let rows = text.split('/').count();
    if rows != height {
        return Err(format!("{rows} rows between slashes, expected {height}"));
    }
    for (number, row) in text.split('/').enumerate() {
        let (mut column, mut glyphs) = (0, row.chars().peekable());
        while let Some(glyph) = glyphs.next() {
            let cell = number * width + column;
            column += match glyph {
                'x' | 'o' if column < width => {
                    place(if glyph == 'x' { Player::Zero } else { Player::One }, cell);
                    1
                }
                'x' | 'o' => 1,
                '1'..='9' => {
                    let mut empty = glyph as usize - '0' as usize;
                    while let Some(digit) = glyphs.peek().and_then(|next| next.to_digit(10)) {
                        // A number of any length is read: the sum below says that it is too much.
                        empty = (empty * 10 + digit as usize).min(1000);
                        glyphs.next();
                    }
                    empty
                }
                _ => return Err(format!("row {} from the top has {glyph:?}, expected x, o or a number", number + 1)),
            };
            column = column.min(1000);
        }
        if column != width {
            return Err(format!("row {} from the top is {row:?}, {column} cells, expected {width}", number + 1));
        }
    }
    Ok(())
}
