//! What is kept of a game: everything a network can learn from it, and enough to play it again.
//!
//! Planes are not stored: replaying the actions gives them, with their true history, in whatever encoding the game
//! has by then. Invariant of a record that passed [`GameRecord::check`]: its actions are legal from the start given,
//! the outcome is what the rules say (a draw if it was cut short, lost for the player to move if that one resigned), and the searched plies name exactly the legal actions.

use crate::game::{Action, Game, Player, PovValue, Turn, Value};

/// The record format's own number, first in its bytes. Format 1 knew no resignation; it is still read.
const FORMAT: u32 = 2;
/// Bits of the byte of flags of a game; format 1 had the first alone.
const CAPPED: u8 = 1;
const RESIGNED: u8 = 2;
const CONTROL: u8 = 4;
/// `resign_ply` of a game in which nobody resigned.
const NO_PLY: u32 = u32::MAX;

/// A searched ply: its policy target and value may be learned from.
pub const SEARCHED: u8 = 1;
/// The network was exchanged while the ply was searched. (A tree kept from the ply before may rest on an older network
/// still, whatever this says.)
pub const MIXED_NETWORKS: u8 = 2;

/// One ply of a game.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ply {
    /// The action or chance outcome.
    pub action: Action,
    /// 0 or 1; -1 at a chance turn.
    pub player: i8,
    /// [`SEARCHED`], [`MIXED_NETWORKS`].
    pub flags: u8,
    /// The search's value for the player to move; 0 where not searched.
    pub root_value: f32,
    /// Hash of the weights that searched it; 0 for none.
    pub network: u64,
}

/// A finished game.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GameRecord {
    /// The game and its parameters, as its maker calls it.
    pub game: String,
    /// Number in its run.
    pub game_id: u64,
    /// Seed of its run.
    pub seed: u64,
    /// For player 0; 0 if capped.
    pub outcome: f32,
    /// Cut short by a cap on plies and scored as a draw.
    pub capped: bool,
    /// The player to move after the last ply gave up: the outcome is a loss for that player, whatever the rules would
    /// have made of it.
    pub resigned: bool,
    /// Played to the end although a player may have wanted to resign.
    pub control: bool,
    /// The ply at which a player resigned (instead of it: there are as many plies) or, in a control game, would have.
    pub resign_ply: Option<u32>,
    /// `[T]`
    pub plies: Vec<Ply>,
    /// `[T + 1]` where the entries of a ply begin and end in the three below; empty for a ply not searched.
    pub offsets: Vec<u32>,
    /// `[K]` legal actions, ply by ply, ascending.
    pub legal: Vec<Action>,
    /// `[K]` visits of each.
    pub visits: Vec<u32>,
    /// `[K]` priors of each, without noise.
    pub priors: Vec<f32>,
}

impl GameRecord {
    /// The entries of a ply in `legal`, `visits` and `priors`.
    #[must_use]
    pub fn range(&self, ply: usize) -> std::ops::Range<usize> {
        self.offsets[ply] as usize..self.offsets[ply + 1] as usize
    }

    /// Number of plies that can be learned from.
    #[must_use]
    pub fn samples(&self) -> usize {
        self.plies.iter().filter(|ply| ply.flags & SEARCHED != 0).count()
    }

    /// Whether a player would have resigned and then did not lose; only control games can tell.
    #[must_use]
    pub fn false_resignation(&self) -> bool {
        let ply = self.resign_ply.filter(|_| !self.resigned).and_then(|ply| self.plies.get(ply as usize));
        ply.is_some_and(|ply| {
            let player = if ply.player == 0 { Player::Zero } else { Player::One };
            Value(self.outcome).pov(player).0 >= 0.0
        })
    }

    /// Plays the record again from `start` and refuses one that the rules do not bear out.
    ///
    /// # Errors
    /// What is wrong, and at which ply.
    pub fn check<G: Game>(&self, start: &G) -> Result<(), String> {
        let mut state = start.clone();
        let mut legal = Vec::new();
        let shape_fits = self.offsets.len() == self.plies.len() + 1
            && self.offsets.windows(2).all(|pair| pair[0] <= pair[1])
            && self.offsets.first() == Some(&0)
            && self.offsets.last().map(|&end| end as usize) == Some(self.legal.len())
            && self.legal.len() == self.visits.len()
            && self.legal.len() == self.priors.len();
        if !shape_fits {
            return Err("its arrays do not fit together".into());
        }
        for (index, ply) in self.plies.iter().enumerate() {
            let player = match state.turn() {
                Turn::Player(player) => player.index() as i8,
                Turn::Chance => -1,
                Turn::Terminal => {
                    return Err(format!("ply {index} comes after the end of the game"));
                }
            };
            if player != ply.player {
                return Err(format!("ply {index} is said to be by player {}, the rules say {player}", ply.player));
            }
            if ply.flags & SEARCHED != 0 {
                if player >= 0 {
                    state.legal_actions(&mut legal);
                }
                let range = self.range(index);
                if player < 0 || self.legal[range.clone()] != legal {
                    return Err(format!("the legal actions stored for ply {index} are not those of the rules"));
                }
                let number = |x: f32| x.is_finite() && x.abs() <= 1.0;
                if !number(ply.root_value) || !self.priors[range.clone()].iter().all(|&prior| number(prior)) {
                    return Err(format!("ply {index} has a value or prior that is none"));
                }
                if self.visits[range].iter().all(|&visits| visits == 0) {
                    return Err(format!("ply {index} is said to be searched, but has no visits"));
                }
            }
            state.try_play(ply.action).map_err(|error| format!("ply {index}: {error}"))?;
        }
        let outcome = match state.turn() {
            Turn::Terminal if self.resigned => return Err("it is said to be resigned, but it ended".into()),
            Turn::Terminal if !self.capped => state.outcome(),
            Turn::Terminal => return Err("it is said to be cut short, but it ended".into()),
            Turn::Player(player) if self.resigned && !self.capped => PovValue(-1.0).absolute(player),
            _ if self.resigned => return Err("it is said to be resigned, but not at a player's turn".into()),
            _ if self.capped => Value(0.0),
            _ => return Err("it stops before the end of the game".into()),
        };
        self.check_resignation()?;
        if outcome.0 == self.outcome {
            Ok(())
        } else {
            Err(format!("its outcome is said to be {}, the rules say {}", self.outcome, outcome.0))
        }
    }

    /// Whether what is said of a resignation fits the plies.
    fn check_resignation(&self) -> Result<(), String> {
        let fits = match self.resign_ply.map(|ply| ply as usize) {
            Some(ply) if self.resigned => ply == self.plies.len() && !self.control,
            Some(ply) => self.control && self.plies.get(ply).is_some_and(|ply| ply.flags & SEARCHED != 0),
            None => !self.resigned,
        };
        if fits { Ok(()) } else { Err("what it says of a resignation does not fit its plies".into()) }
    }

    /// The record as bytes, little-endian throughout.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.plies.len() * 22 + self.legal.len() * 12);
        out.extend(FORMAT.to_le_bytes());
        out.extend((self.game.len() as u32).to_le_bytes());
        out.extend(self.game.as_bytes());
        out.extend(self.game_id.to_le_bytes());
        out.extend(self.seed.to_le_bytes());
        out.extend(self.outcome.to_le_bytes());
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        out.push(flag(self.capped, CAPPED) | flag(self.resigned, RESIGNED) | flag(self.control, CONTROL));
        out.extend(self.resign_ply.unwrap_or(NO_PLY).to_le_bytes());
        out.extend((self.plies.len() as u32).to_le_bytes());
        out.extend((self.legal.len() as u32).to_le_bytes());
        for ply in &self.plies {
            out.extend(ply.action.to_le_bytes());
            out.extend(ply.player.to_le_bytes());
            out.push(ply.flags);
            out.extend(ply.root_value.to_le_bytes());
            out.extend(ply.network.to_le_bytes());
        }
        self.offsets.iter().for_each(|x| out.extend(x.to_le_bytes()));
        self.legal.iter().for_each(|x| out.extend(x.to_le_bytes()));
        self.visits.iter().for_each(|x| out.extend(x.to_le_bytes()));
        self.priors.iter().for_each(|x| out.extend(x.to_le_bytes()));
        out
    }

    /// Reads what [`GameRecord::to_bytes`] wrote. Any bytes may come; use [`GameRecord::check`] on the result.
    ///
    /// # Errors
    /// A sentence that says what was expected.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let mut reader = Reader(bytes);
        let format = reader.u32()?;
        if !(1..=FORMAT).contains(&format) {
            return Err(format!("a game record of format {format}, expected 1 to {FORMAT}"));
        }
        let name_len = reader.u32()? as usize;
        let game = String::from_utf8(reader.take(name_len)?.to_vec())
            .map_err(|_| "a game record whose name is no text".to_string())?;
        let game_id = reader.u64()?;
        let seed = reader.u64()?;
        let outcome = f32::from_bits(reader.u32()?);
        let flags = reader.u8()?;
        let known = if format == 1 { CAPPED } else { CAPPED | RESIGNED | CONTROL };
        if flags & !known != 0 {
            return Err(format!("a game record with flags {flags:#04x}, which format {format} does not have"));
        }
        let resign_ply = if format == 1 { None } else { Some(reader.u32()?).filter(|&ply| ply != NO_PLY) };
        let (num_plies, num_legal) = (reader.u32()? as usize, reader.u32()? as usize);
        let needed = num_plies as u64 * 22 + 4 + num_legal as u64 * 12;
        if needed != reader.0.len() as u64 {
            return Err(format!("a game record with {} bytes of plies, expected {needed}", reader.0.len()));
        }
        let mut plies = Vec::with_capacity(num_plies);
        for _ in 0..num_plies {
            plies.push(Ply {
                action: reader.u32()?,
                player: reader.u8()? as i8,
                flags: reader.u8()?,
                root_value: f32::from_bits(reader.u32()?),
                network: reader.u64()?,
            });
        }
        let mut words = |count: usize| (0..count).map(|_| reader.u32()).collect::<Result<Vec<_>, _>>();
        let offsets = words(num_plies + 1)?;
        let legal = words(num_legal)?;
        let visits = words(num_legal)?;
        let priors = words(num_legal)?.into_iter().map(f32::from_bits).collect();
        Ok(Self {
            game,
            game_id,
            seed,
            outcome,
            capped: flags & CAPPED != 0,
            resigned: flags & RESIGNED != 0,
            control: flags & CONTROL != 0,
            resign_ply,
            plies,
            offsets,
            legal,
            visits,
            priors,
        })
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or("a game record that ends too soon")?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        Ok(self.take(N)?.try_into().expect("as many as were taken"))
    }

    fn u8(&mut self) -> Result<u8, String> {
        Ok(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}
