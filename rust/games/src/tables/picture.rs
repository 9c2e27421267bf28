//! Boards of the backgammon family as SVG, as player 0 sees them: 24 points in two rows of two halves, and at one side a
//! tray for the checkers that are off.

use azpy_core::game::Player;
use azpy_core::picture::Touch;
use azpy_core::text::Notation;

use super::Side;
use crate::svg::{INK, Svg, color};

/// Width of a point and diameter of a checker.
const STEP: f32 = 40.0;
/// The width of the wood around a board, which bears the numbers of points.
const MARGIN: f32 = 14.0;
/// Of the board within the wood.
const HEIGHT: f32 = 440.0;
const TRAY: f32 = 48.0;
/// Checkers of a stack that are drawn.
pub(crate) const ROWS: u32 = 5;
/// Of a stack.
const DEPTH: f32 = STEP * ROWS as f32;

/// The picture of a game's board: what tells the games of the family apart.
pub(crate) struct BoardPicture {
    /// Whether point 1 and the tray are at the left.
    pub(crate) from_left: bool,
    /// Between the halves.
    pub(crate) gap: f32,
    /// Of the wood around the halves, of the halves, and of even and odd points.
    pub(crate) fills: [&'static str; 4],
}

impl BoardPicture {
    fn width(&self) -> f32 {
        2.0 * MARGIN + 12.0 * STEP + self.gap + TRAY
    }

    /// The left edge of the halves.
    fn halves(&self) -> [f32; 2] {
        let left = MARGIN + if self.from_left { TRAY } else { 0.0 };
        [left, left + 6.0 * STEP + self.gap]
    }

    /// The left edge of what is between the halves.
    pub(crate) fn left_of_gap(&self) -> f32 {
        self.halves()[0] + 6.0 * STEP
    }

    /// The left edge of the tray, and whether a player's checkers lie in its upper half.
    fn tray(&self, player: Player) -> (f32, bool) {
        let x = if self.from_left { MARGIN } else { self.width() - MARGIN - TRAY };
        (x, (player == Player::Zero) == self.from_left)
    }

    /// The left edge of a point, numbered as player 0 does.
    fn left_of(&self, point: u32) -> f32 {
        let near = if point > 12 { 24 - point } else { point - 1 };
        let column = if self.from_left { near } else { 11 - near } as usize;
        self.halves()[column / 6] + STEP * (column % 6) as f32
    }

    /// The place where checkers of a stack are touched.
    pub(crate) fn touch(&self, name: String, x: f32, width: f32, upper: bool) -> Touch {
        let y = if upper { MARGIN } else { MARGIN + HEIGHT - DEPTH };
        Touch::new(name, [x, y, width, DEPTH])
    }

    /// The place of the checkers of `player` on a point, counted from 0 from the own side; the tray if there is none.
    pub(crate) fn touch_of(&self, player: Player, place: Option<u32>, name: impl Fn(u32) -> String) -> Touch {
        let Some(place) = place else {
            let (x, upper) = self.tray(player);
            return self.touch("tray".to_owned(), x, TRAY, upper);
        };
        let point = point_of(player, place);
        self.touch(name(place), self.left_of(point), STEP, point > 12)
    }

    /// The board without checkers.
    pub(crate) fn drawn(&self, game: &impl Notation) -> Svg {
        let ([wood, ground, even, odd], height) = (self.fills, HEIGHT + 2.0 * MARGIN);
        let mut svg = Svg::new(self.width(), height, game);
        svg.rect(0.0, 0.0, self.width(), height, &format!("rx=\"6\" fill=\"{wood}\""));
        for x in self.halves() {
            svg.rect(x, MARGIN, 6.0 * STEP, HEIGHT, &format!("fill=\"{ground}\""));
        }
        for point in 1..=24 {
            let (x, upper) = (self.left_of(point), point > 12);
            let (edge, tip) = if upper { (MARGIN, MARGIN + 190.0) } else { (MARGIN + HEIGHT, MARGIN + HEIGHT - 190.0) };
            let fill = if point % 2 == 0 { even } else { odd };
            svg.polygon(&[(x, edge), (x + STEP / 2.0, tip), (x + STEP, edge)], &format!("fill=\"{fill}\""));
            let y = MARGIN / 2.0 + if upper { 0.0 } else { MARGIN + HEIGHT };
            svg.text_that_looks(x + STEP / 2.0, y, 10.0, &point.to_string(), "class=\"name\" fill=\"#ffffff\"");
        }
        svg
    }

    /// Checkers on points, and those off as slabs in the tray.
    pub(crate) fn draw_side(&self, svg: &mut Svg, side: Side, player: Player) {
        for place in 0..24 {
            let point = point_of(player, place);
            let y = |row| middle_of(point > 12, row);
            draw_stack(svg, player, self.left_of(point) + STEP / 2.0, side.count(place), y);
        }
        let (x, upper) = self.tray(player);
        for slab in 0..side.off() {
            let depth = 13.0 * slab as f32 + 4.0;
            let y = if upper { MARGIN + depth } else { MARGIN + HEIGHT - depth - 11.0 };
            svg.rect(x + 6.0, y, TRAY - 12.0, 11.0, &format!("rx=\"2\" fill=\"{}\"", color(player)));
        }
    }

    /// The dice of a roll in the middle of a half, those that have been played faint: each with whether it is left.
    pub(crate) fn draw_dice(&self, svg: &mut Svg, mover: Player, dice: &[(u8, bool)]) {
        const SIZE: f32 = 34.0;
        let half = self.halves()[usize::from(mover == Player::Zero)];
        let begin = half + 3.0 * STEP - dice.len() as f32 * (SIZE + 8.0) / 2.0 + 4.0;
        for (number, &(die, is_left)) in dice.iter().enumerate() {
            let (x, y) = (begin + number as f32 * (SIZE + 8.0), MARGIN + HEIGHT / 2.0 - SIZE / 2.0);
            let opacity = if is_left { 1.0 } else { 0.3 };
            let look = format!("rx=\"6\" fill=\"{}\" stroke=\"{INK}\" opacity=\"{opacity}\"", color(mover));
            svg.rect(x, y, SIZE, SIZE, &look);
            for (column, row) in pips(die) {
                svg.circle(x + SIZE / 2.0 + 9.0 * column, y + SIZE / 2.0 + 9.0 * row, 3.2, "fill=\"#ffffff\"");
            }
        }
    }
}

/// The point of a player's place, numbered as player 0 does.
fn point_of(player: Player, place: u32) -> u32 {
    if player == Player::Zero { place + 1 } else { 24 - place }
}

/// The middle of the checker in `row` of a stack that stands at the upper or at the lower edge.
pub(crate) fn middle_of(upper: bool, row: u32) -> f32 {
    let depth = STEP * (row as f32 + 0.5);
    if upper { MARGIN + depth } else { MARGIN + HEIGHT - depth }
}

/// At most five checkers; the last of more says how many there are.
pub(crate) fn draw_stack(svg: &mut Svg, player: Player, x: f32, count: u32, y: impl Fn(u32) -> f32) {
    let look = format!("fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"1.5\"", color(player));
    (0..count.min(ROWS)).for_each(|row| svg.circle(x, y(row), 18.5, &look));
    if count > ROWS {
        svg.circle(x, y(ROWS - 1), 12.0, "fill=\"#ffffff\"");
        svg.text(x, y(ROWS - 1), 16.0, &count.to_string());
    }
}

/// The spots of a die, in thirds from its middle.
pub(crate) fn pips(die: u8) -> Vec<(f32, f32)> {
    let mut spots = Vec::new();
    if die % 2 == 1 {
        spots.push((0.0, 0.0));
    }
    if die >= 2 {
        spots.extend([(-1.0, -1.0), (1.0, 1.0)]);
    }
    if die >= 4 {
        spots.extend([(-1.0, 1.0), (1.0, -1.0)]);
    }
    if die == 6 {
        spots.extend([(-1.0, 0.0), (1.0, 0.0)]);
    }
    spots
}
