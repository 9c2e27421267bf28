//! Mensch ärgere Dich nicht for two to four players: bring four pieces around the board and into the goal first.
//!
//! Fields are counted from each player's own start: 0 to 39 are the ring, 40 to 43 the own goal. Action 0 passes, 1
//! brings a piece in, and `2 + field` moves the piece on the field. The six outcomes of a roll are its faces less one.
//!
//! Invariant: no ring field has pieces of two players, each player has at most four pieces on the board, and `die` is
//! 0 before a roll and at no other time.

use std::marker::PhantomData;

use azpy_core::game::{Action, Game, Payoff, Player, Sizes, Turn, Value};
use azpy_core::picture::Touch;
use azpy_core::text::{Notation, outcome_text, play_line, shown};

use crate::error::{Error, invalid};
use crate::key::{Tag, digest};
use crate::notation::{Words, check_players, everybody, limit_of_plies, mark, marked, read_number};
use crate::svg::{self, Svg};
use crate::tables::picture::pips;

/// Pass the die on.
pub const PASS: Action = 0;
/// Bring a piece onto the start field.
pub const ENTER: Action = 1;
/// The action of the piece on field 0; those of the other fields follow.
pub const FIRST: Action = 2;

const SEATS: usize = 4;
const RING: usize = 40;
const GOALS: usize = 4;
const FIELDS: usize = RING + GOALS;
const PIECES: u32 = 4;
/// One bit a field of the goal.
const GOAL: u64 = 0b1111 << RING;
const SIX: u8 = 6;
/// Features of a seat, and of a position.
const SEAT_FEATURES: usize = FIELDS + 1;
const FEATURES: usize = SEATS * SEAT_FEATURES + SIX as usize + 1;
/// The last plies before the draw, in which the clock runs.
const CLOCK: u16 = 200;
/// Columns and rows of the board, and its middle.
const SIDE: usize = 11;
const MIDDLE: usize = SIDE / 2;

/// A position of Mensch ärgere Dich nicht. `P` is [`Value`] with two players, and `Values` with more.
///
/// ```
/// use azpy_core::game::{Game, Player, Turn, Values};
/// use azpy_core::text::Notation;
/// use azpy_games::Maedn;
///
/// let start = Maedn::<Values>::new(3, true, 3000)?;
/// // Player 0 cannot move. Player 1 throws a six, brings a piece in, and throws again.
/// let game = start.parse("4 pass 6 enter 5 1/6")?;
/// assert_eq!((game.turn(), game.pieces(Player::One)), (Turn::Chance, vec![5]));
/// assert_eq!(game.to_text().unwrap(), "o=6 turn=y plies=6");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Maedn<P = Value> {
    /// By player: one bit a field with a piece. The other pieces are at home.
    pieces: [u64; SEATS],
    mover: Player,
    die: u8,
    players: u8,
    /// Two players sit opposite each other, and not side by side.
    opposite: bool,
    plies: u16,
    max_plies: u16,
    payoff: PhantomData<P>,
}

impl Default for Maedn {
    /// Two players who sit opposite each other, cut after 3,000 plies.
    fn default() -> Self {
        Self::start(2, true, 3000)
    }
}

impl<P: Payoff> Maedn<P> {
    /// The start of a game that is a draw after `max_plies` plies. `opposite` is about two players: whether they sit
    /// opposite each other, or side by side.
    ///
    /// # Errors
    /// If the players are not 2 with `Value`, or 3 or 4 with `Values`; if more than two are not to sit opposite; if
    /// `max_plies` is not from 1 to 65,535.
    pub fn new(players: usize, opposite: bool, max_plies: usize) -> Result<Self, Error> {
        check_players::<P>(players, &[2, 3, 4])?;
        if !opposite && players != 2 {
            return Err(Error::form("opposite=0 seats two players side by side", format!("{players} players")));
        }
        Ok(Self::start(players, opposite, limit_of_plies(max_plies)?))
    }

    fn start(players: usize, opposite: bool, max_plies: u16) -> Self {
        Self {
            pieces: [0; SEATS],
            mover: Player::Zero,
            die: 0,
            players: players as u8,
            opposite,
            plies: 0,
            max_plies,
            payoff: PhantomData,
        }
    }

    /// The fields with a player's pieces, ascending, counted from the player's start; from 40 on they are the goal.
    #[must_use]
    pub fn pieces(&self, player: Player) -> Vec<usize> {
        (0..FIELDS).filter(|&field| self.has(player, field)).collect()
    }

    /// The number on the die; `None` before a roll.
    #[must_use]
    pub fn die(&self) -> Option<usize> {
        (self.die > 0).then_some(usize::from(self.die))
    }

    #[inline]
    fn has(&self, player: Player, field: usize) -> bool {
        self.pieces[player.index()] >> field & 1 == 1
    }

    #[inline]
    fn at_home(&self, player: Player) -> u32 {
        PIECES - self.pieces[player.index()].count_ones()
    }

    /// A player's seat, clockwise from player 0.
    #[inline]
    fn seat(&self, player: Player) -> usize {
        if self.players == 2 && self.opposite { 2 * player.index() } else { player.index() }
    }

    /// How far a player's start is from that of the player to move, along the ring.
    #[inline]
    fn ahead(&self, player: Player) -> usize {
        (self.seat(player) + SEATS - self.seat(self.mover)) % SEATS * (RING / SEATS)
    }

    #[inline]
    fn winner(&self) -> Option<Player> {
        everybody(self.players).find(|player| self.pieces[player.index()] == GOAL)
    }

    /// One bit a field whose piece can go on by the die.
    #[inline]
    fn movable(&self) -> u64 {
        let own = self.pieces[self.mover.index()];
        own & !(own >> self.die) & ((1_u64 << (FIELDS - usize::from(self.die))) - 1)
    }

    /// Puts a piece of the player to move onto a field, and sends a piece of another player there home.
    #[inline]
    fn land(&mut self, field: usize) {
        self.pieces[self.mover.index()] |= 1 << field;
        if field >= RING {
            return;
        }
        let mover = self.mover;
        for other in everybody(self.players).filter(|&other| other != mover) {
            let theirs = (field + RING - self.ahead(other)) % RING;
            self.pieces[other.index()] &= !(1 << theirs);
        }
    }

    /// The field of an action, and the field that its piece goes to.
    fn way(&self, action: Action) -> (usize, usize) {
        let from = action.saturating_sub(FIRST) as usize;
        (from, from + usize::from(self.die))
    }

    /// The owner of pieces on a ring field, counted from player 0's start.
    fn on_ring(&self, ring: usize) -> Option<Player> {
        let own = |player: Player| (ring + RING - self.seat(player) * (RING / SEATS)) % RING;
        everybody(self.players).find(|&player| self.has(player, own(player)))
    }

    /// Column and row of a player's field, home or goal, as the board is drawn.
    fn place(&self, player: Player, field: usize) -> [usize; 2] {
        let seat = self.seat(player);
        match field {
            RING.. => turned(seat, [MIDDLE, SIDE - 2 + RING - field]),
            _ => ring_place(field + seat * (RING / SEATS)),
        }
    }

    /// The position that a text like `x=1,13,b o=40 turn=x die=6 plies=33` means.
    fn read(&self, text: &str) -> Result<Self, Error> {
        const KEYS: [&str; 7] = ["x", "o", "y", "z", "turn", "die", "plies"];
        let words = Words::read(text, &KEYS, "x=FIELDS o=FIELDS and so on, turn=, and die= and plies= where needed")?;
        let mut game = Self::start(self.num_players(), self.opposite, self.max_plies);
        for (seat, key) in KEYS[..SEATS].iter().enumerate() {
            let Some(fields) = words.get(key) else { continue };
            if seat >= self.num_players() {
                return Err(invalid!("{key} is not one of the {} players", self.players));
            }
            for word in fields.split(',') {
                let field = read_field(word)?;
                if game.pieces[seat] >> field & 1 == 1 {
                    return Err(invalid!("{key} has two pieces on field {word}"));
                }
                game.pieces[seat] |= 1 << field;
            }
            let count = game.pieces[seat].count_ones();
            if count > PIECES {
                return Err(Error::form(format!("{key} has {PIECES} pieces"), format!("{count} fields")));
            }
        }
        let on_board: u32 = game.pieces.iter().map(|pieces| (pieces & !GOAL).count_ones()).sum();
        if (0..RING).filter(|&ring| game.on_ring(ring).is_some()).count() != on_board as usize {
            return Err(invalid!("a ring field has pieces of two players; fields count from each player's start"));
        }
        let turn = words.needed("turn")?;
        let mover = everybody(self.players).find(|&player| turn == mark(player).to_string());
        game.mover = mover.ok_or_else(|| Error::value("turn", "the letter of a player", shown(turn)))?;
        game.die = words.number("die", 1, u16::from(SIX))? as u8;
        game.plies = words.number("plies", 0, self.max_plies)?;
        let winners = everybody(self.players).filter(|player| game.pieces[player.index()] == GOAL).count();
        if winners > 1 || (winners == 1 && game.die > 0) {
            return Err(invalid!("the game is over once a player's pieces are all in the goal, before a roll"));
        }
        Ok(game)
    }
}

/// Column and row of the ring's first quarter, and of the home, of player 0, who sits below.
const QUARTER: [[usize; 2]; 10] = [[4, 10], [4, 9], [4, 8], [4, 7], [4, 6], [3, 6], [2, 6], [1, 6], [0, 6], [0, 5]];
const HOME: [[usize; 2]; 4] = [[0, 10], [0, 9], [1, 10], [1, 9]];

/// A place of the first seat as another seat has it: a quarter of a turn clockwise for each seat.
fn turned(seat: usize, place: [usize; 2]) -> [usize; 2] {
    (0..seat).fold(place, |[column, row], _| [SIDE - 1 - row, column])
}

/// Column and row of a ring field, counted from player 0's start.
fn ring_place(field: usize) -> [usize; 2] {
    turned(field / QUARTER.len() % SEATS, QUARTER[field % QUARTER.len()])
}

/// The name of a field for its player: 1 to 40, and a to d in the goal.
fn field_name(field: usize) -> String {
    match field {
        ..RING => (field + 1).to_string(),
        RING..FIELDS => char::from(b'a' + (field - RING) as u8).to_string(),
        _ => "-".to_owned(),
    }
}

fn read_field(word: &str) -> Result<usize, Error> {
    match word.as_bytes() {
        [letter @ b'a'..=b'd'] => Ok(RING + usize::from(letter - b'a')),
        _ => read_number("a field", word, 1, RING as u16)
            .map(|number| usize::from(number) - 1)
            .map_err(|error| invalid!("{error}; fields of the goal are a to d")),
    }
}

impl<P: Payoff> Game for Maedn<P> {
    type Payoff = P;

    fn num_players(&self) -> usize {
        usize::from(self.players)
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            // No piece leaves the last field of the goal.
            num_actions: FIRST as usize + FIELDS - 1,
            obs_shape: [FEATURES, 1, 1],
            max_plies: usize::from(self.max_plies),
            num_symmetries: 1,
        }
    }

    #[inline]
    fn turn(&self) -> Turn {
        if self.plies >= self.max_plies || self.winner().is_some() {
            Turn::Terminal
        } else if self.die == 0 {
            Turn::Chance
        } else {
            Turn::Player(self.mover)
        }
    }

    #[inline]
    fn legal_actions(&self, out: &mut Vec<Action>) {
        out.clear();
        if self.at_home(self.mover) > 0 {
            let on_start = self.has(self.mover, 0);
            if on_start && !self.has(self.mover, usize::from(self.die)) {
                return out.push(FIRST);
            }
            if !on_start && self.die == SIX {
                return out.push(ENTER);
            }
        }
        let movable = self.movable();
        out.extend((0..FIELDS as Action).filter(|field| movable >> field & 1 == 1).map(|field| FIRST + field));
        if out.is_empty() {
            out.push(PASS);
        }
    }

    #[inline]
    fn play(&mut self, action: Action) {
        debug_assert!(self.turn() != Turn::Terminal);
        self.plies += 1;
        if self.die == 0 {
            debug_assert!(action < Action::from(SIX), "{action} is not a face of the die");
            self.die = action as u8 + 1;
            return;
        }
        match action {
            PASS => {}
            ENTER => self.land(0),
            _ => {
                let (from, to) = self.way(action);
                debug_assert!(self.movable() >> from & 1 == 1);
                self.pieces[self.mover.index()] &= !(1 << from);
                self.land(to);
            }
        }
        if self.die != SIX {
            self.mover = Player::ALL[(self.mover.index() + 1) % usize::from(self.players)];
        }
        self.die = 0;
    }

    fn chance_outcomes(&self, out: &mut Vec<(Action, f32)>) {
        out.clear();
        out.extend((0..Action::from(SIX)).map(|outcome| (outcome, 1.0 / f32::from(SIX))));
    }

    fn outcome(&self) -> P {
        P::won_by(self.winner(), self.num_players())
    }

    fn encode(&self, row: &mut [f32]) {
        row.fill(0.0);
        for player in everybody(self.players) {
            let ahead = self.ahead(player);
            let features = &mut row[ahead / (RING / SEATS) * SEAT_FEATURES..][..SEAT_FEATURES];
            for field in self.pieces(player) {
                features[if field < RING { (field + ahead) % RING } else { field }] = 1.0;
            }
            features[FIELDS] = self.at_home(player) as f32 / PIECES as f32;
        }
        if let Some(die) = self.die() {
            row[SEATS * SEAT_FEATURES + die - 1] = 1.0;
        }
        row[FEATURES - 1] = f32::from(CLOCK.saturating_sub(self.max_plies - self.plies)) / f32::from(CLOCK);
    }

    fn plane_divisors(&self) -> Option<Vec<u16>> {
        let mut divisors = vec![1; FEATURES];
        (0..SEATS).for_each(|seat| divisors[seat * SEAT_FEATURES + FIELDS] = PIECES as u16);
        divisors[FEATURES - 1] = CLOCK;
        Some(divisors)
    }

    fn key(&self) -> u128 {
        let [a, b, c, d] = self.pieces;
        let rest = self.mover.index() as u64
            | u64::from(self.die) << 4
            | u64::from(self.players) << 8
            | u64::from(self.opposite) << 12
            | u64::from(self.plies) << 16
            | u64::from(self.max_plies) << 32;
        digest(Tag::Maedn, &[a, b, c, d, rest])
    }

    fn render(&self) -> String {
        let mut cells = [[' '; SIDE]; SIDE];
        let mut put = |[column, row]: [usize; 2], glyph| cells[row][column] = glyph;
        for ring in 0..RING {
            put(ring_place(ring), self.on_ring(ring).map_or('.', mark));
        }
        for player in everybody(self.players) {
            for field in RING..FIELDS {
                put(self.place(player, field), if self.has(player, field) { mark(player) } else { '-' });
            }
            for &place in &HOME[..self.at_home(player) as usize] {
                put(turned(self.seat(player), place), mark(player));
            }
        }
        let mut lines: Vec<String> = Vec::new();
        for row in cells {
            let line: String = row.iter().flat_map(|&glyph| [glyph, ' ']).collect();
            lines.push(line.trim_end().to_owned());
        }
        let die = self.die().map_or("rolls".to_owned(), |die| format!("has rolled {die}"));
        format!("{}\n{} {die}, ply {} of {}", lines.join("\n"), mark(self.mover), self.plies, self.max_plies)
    }
}

impl<P: Payoff> Notation for Maedn<P> {
    /// A roll as `4`; an action as `13/17`, `38/b`, `enter` or `pass`. Fields are counted from the mover's start.
    fn action_name(&self, action: Action) -> String {
        match (self.turn(), action) {
            (Turn::Chance, _) => (u64::from(action) + 1).to_string(),
            (_, PASS) => "pass".to_owned(),
            (_, ENTER) => "enter".to_owned(),
            _ => {
                let (from, to) = self.way(action);
                format!("{}/{}", field_name(from), field_name(to))
            }
        }
    }

    fn owner(&self, _line: usize, glyph: char) -> Option<Player> {
        marked(glyph)
    }

    fn side_names(&self) -> Option<Vec<&str>> {
        Some(svg::NAMES[..self.num_players()].to_vec())
    }

    fn result_text(&self) -> String {
        outcome_text(self, if self.winner().is_none() { "by the limit of plies" } else { "" })
    }

    fn counts(&self) -> Vec<String> {
        let in_goal = |player: Player| (self.pieces[player.index()] & GOAL).count_ones();
        everybody(self.players).map(|player| format!("{} of {PIECES} in the goal", in_goal(player))).collect()
    }

    fn to_svg(&self) -> String {
        let mut picture = Svg::board(SIDE, SIDE, self);
        let mut circle = |[column, row]: [usize; 2], radius: f32, look: &str| {
            picture.circle(svg::centre(column), svg::centre(row), radius * svg::CELL, look);
        };
        for ring in 0..RING {
            circle(ring_place(ring), 0.42, &format!("fill=\"{}\" stroke=\"{}\"", svg::EMPTY, svg::LINE));
        }
        for player in everybody(self.players) {
            let color = svg::color(player);
            let rim = format!("fill=\"#ffffff\" stroke=\"{color}\" stroke-width=\"3\"");
            circle(self.place(player, 0), 0.42, &rim);
            (RING..FIELDS).for_each(|field| circle(self.place(player, field), 0.42, &rim));
            for (number, &place) in HOME.iter().enumerate() {
                let place = turned(self.seat(player), place);
                circle(place, 0.42, &rim);
                if number < self.at_home(player) as usize {
                    circle(place, 0.32, &format!("fill=\"{color}\""));
                }
            }
        }
        // A player's piece may stand on another player's start.
        for player in everybody(self.players) {
            for field in self.pieces(player) {
                circle(self.place(player, field), 0.32, &format!("fill=\"{}\"", svg::color(player)));
            }
        }
        if let Some(die) = self.die() {
            let (x, half) = (svg::centre(MIDDLE), 0.45 * svg::CELL);
            let look = format!("rx=\"6\" fill=\"{}\"", svg::color(self.mover));
            picture.rect(x - half, x - half, 2.0 * half, 2.0 * half, &look);
            for (column, row) in pips(die as u8) {
                picture.circle(x + 10.0 * column, x + 10.0 * row, 3.5, "fill=\"#ffffff\"");
            }
        }
        picture.done()
    }

    /// Where the piece stands, the home or a field, and where it goes.
    fn touches(&self, action: Action) -> Vec<Touch> {
        let square = |field: usize| {
            let [column, row] = self.place(self.mover, field);
            svg::square(format!("field {}", field_name(field)), column, row)
        };
        match action {
            PASS => Vec::new(),
            ENTER => {
                let corner = HOME.map(|place| turned(self.seat(self.mover), place));
                let [x, y] = [0_usize, 1].map(|axis| corner.iter().map(|place| place[axis]).min().unwrap_or(0));
                let [x, y] = [x, y].map(|number| svg::centre(number) - svg::CELL / 2.0);
                vec![Touch::new("home", [x, y, 2.0 * svg::CELL, 2.0 * svg::CELL]), square(0)]
            }
            _ => {
                let (from, to) = self.way(action);
                if to < FIELDS { vec![square(from), square(to)] } else { Vec::new() }
            }
        }
    }

    /// A position as in `x=1,13,b o=40 turn=x die=6 plies=33`, or a line of play.
    fn parse(&self, text: &str) -> Result<Self, azpy_core::Error> {
        if text.contains('=') { Ok(self.read(text)?) } else { play_line(self, text) }
    }

    fn to_text(&self) -> Option<String> {
        let mut words = Vec::new();
        for player in everybody(self.players).filter(|player| self.pieces[player.index()] != 0) {
            let fields: Vec<_> = self.pieces(player).into_iter().map(field_name).collect();
            words.push(format!("{}={}", mark(player), fields.join(",")));
        }
        words.push(format!("turn={}", mark(self.mover)));
        words.extend(self.die().map(|die| format!("die={die}")));
        if self.plies > 0 {
            words.push(format!("plies={}", self.plies));
        }
        Some(words.join(" "))
    }
}
