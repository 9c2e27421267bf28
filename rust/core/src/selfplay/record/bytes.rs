//! A record as bytes.

use super::{FAST_SEARCH, GameRecord, MIXED_NETWORKS, PLAYED, Ply, SEARCHED};
use crate::error::Error;

/// The number of the format, first in the bytes of a record. Formats 1 to 6 were never released and are not read. Each
/// later format is.
const FORMAT: u32 = 7;
/// Bits of the byte of flags of a game.
const CAPPED: u8 = 1;
const RESIGNED: u8 = 2;
/// The game was played on although a player would have resigned. It is read as a usual game, and no longer written.
const CONTROL: u8 = 4;
const TARGETS: u8 = 8;
const IMPORTED: u8 = 16;
/// The record has its own number of simulations, which is no longer written.
const SIMULATIONS: u8 = 32;
const RANKED: u8 = 64;
const GAME_FLAGS: u8 = CAPPED | RESIGNED | CONTROL | TARGETS | IMPORTED | RANKED;
/// The number of a ply that a game without a resignation has in the place of one.
const NO_PLY: u32 = u32::MAX;

impl GameRecord {
    /// The record as bytes, little-endian throughout.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.plies.len() * 22 + self.legal.len() * 16);
        out.extend(FORMAT.to_le_bytes());
        out.extend((self.game.len() as u32).to_le_bytes());
        out.extend(self.game.as_bytes());
        out.extend(self.game_id.to_le_bytes());
        out.extend(self.seed.to_le_bytes());
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        let end = flag(self.capped, CAPPED) | flag(self.resigned, RESIGNED);
        let more = flag(!self.targets.is_empty(), TARGETS) | flag(self.imported, IMPORTED);
        let ranked = flag(self.score_to_beat.is_some(), RANKED);
        out.extend([end | more | ranked, self.num_players as u8, self.outcomes.len() as u8]);
        let resign_ply = if self.resigned { self.plies.len() as u32 } else { NO_PLY };
        out.extend(resign_ply.to_le_bytes());
        out.extend(self.score_to_beat.iter().flat_map(|score| score.to_le_bytes()));
        self.outcomes.iter().for_each(|x| out.extend(x.to_le_bytes()));
        out.extend((self.plies.len() as u32).to_le_bytes());
        out.extend((self.legal.len() as u32).to_le_bytes());
        for ply in &self.plies {
            out.extend(ply.action.to_le_bytes());
            out.extend(ply.player.to_le_bytes());
            out.push(ply.flags);
            out.extend(ply.network.to_le_bytes());
        }
        self.offsets.iter().for_each(|x| out.extend(x.to_le_bytes()));
        self.legal.iter().for_each(|x| out.extend(x.to_le_bytes()));
        self.visits.iter().for_each(|x| out.extend(x.to_le_bytes()));
        self.priors.iter().for_each(|x| out.extend(x.to_le_bytes()));
        self.targets.iter().for_each(|x| out.extend(x.to_le_bytes()));
        self.root_values.iter().for_each(|x| out.extend(x.to_le_bytes()));
        out
    }

    /// Reads what [`GameRecord::to_bytes`] wrote. Any bytes may come; use [`GameRecord::check`] on the result.
    ///
    /// # Errors
    /// [`Error::Bytes`]: what was expected.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader(bytes);
        let format = reader.u32()?;
        if format != FORMAT {
            return Err(unreadable(format!("a game record of format {format}, expected {FORMAT}")));
        }
        let name_len = reader.u32()? as usize;
        let game = String::from_utf8(reader.take(name_len)?.to_vec())
            .map_err(|_| unreadable("a game record whose name is not UTF-8"))?;
        let game_id = reader.u64()?;
        let seed = reader.u64()?;
        let flags = reader.u8()?;
        if flags & SIMULATIONS != 0 {
            return Err(unreadable(
                "a game of a run with growing simulations, which this version of azpy does not read",
            ));
        }
        if flags & !GAME_FLAGS != 0 {
            return Err(unreadable(format!("a game record with unknown flags {flags:#04x}")));
        }
        let (num_players, width) = (usize::from(reader.u8()?), usize::from(reader.u8()?));
        reader.u32()?; // the ply of a resignation: it is known from the flags and the number of plies
        let score_to_beat = if flags & RANKED == 0 { None } else { Some(f32::from_bits(reader.u32()?)) };
        let outcomes = (0..width).map(|_| reader.u32().map(f32::from_bits)).collect::<Result<_, _>>()?;
        let (num_plies, num_legal) = (reader.u32()? as usize, reader.u32()? as usize);
        let num_targets = if flags & TARGETS == 0 { 0 } else { num_legal };
        let num_values = num_plies * width;
        let needed = num_plies as u64 * (18 + 4 * width as u64) + 4 + num_legal as u64 * 12 + num_targets as u64 * 4;
        if needed != reader.0.len() as u64 {
            let got = reader.0.len();
            return Err(unreadable(format!("a game record with {got} bytes of plies, expected {needed}")));
        }
        let mut plies = Vec::with_capacity(num_plies);
        for _ in 0..num_plies {
            let (action, player, flags) = (reader.u32()?, reader.u8()? as i8, reader.u8()?);
            plies.push(Ply { action, player, flags, network: reader.u64()? });
        }
        let own = SEARCHED | MIXED_NETWORKS | FAST_SEARCH;
        let (known, kind) =
            if flags & IMPORTED == 0 { (own, " game of self-play") } else { (own | PLAYED, "n imported game") };
        if let Some(ply) = plies.iter().find(|ply| ply.flags & !known != 0) {
            let flags = ply.flags;
            return Err(unreadable(format!("a game record with ply flags {flags:#04x}, which a{kind} does not have")));
        }
        let mut words = |count: usize| (0..count).map(|_| reader.u32()).collect::<Result<Vec<_>, _>>();
        let floats = |words: Vec<u32>| words.into_iter().map(f32::from_bits).collect();
        let record = Self {
            game,
            game_id,
            seed,
            num_players,
            outcomes,
            capped: flags & CAPPED != 0,
            resigned: flags & RESIGNED != 0,
            imported: flags & IMPORTED != 0,
            score_to_beat,
            plies,
            offsets: words(num_plies + 1)?,
            legal: words(num_legal)?,
            visits: words(num_legal)?,
            priors: floats(words(num_legal)?),
            targets: floats(words(num_targets)?),
            root_values: floats(words(num_values)?),
        };
        // Check the shape here too, so that a record can be read before `check`.
        if record.shape_fits() { Ok(record) } else { Err(unreadable("a game record whose arrays do not fit together")) }
    }
}

fn unreadable(why: impl Into<String>) -> Error {
    Error::Bytes(why.into())
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| unreadable("a game record that is cut short"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        Ok(self.take(N)?.try_into().expect("as many as were taken"))
    }

    fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }
}
