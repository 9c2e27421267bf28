//! Observations as bytes: a quarter of the memory on their way to a device, which makes floats of them again.
//!
//! The bytes of a row are planes `[C', H, W]`: first the low bytes of the numerators of all C planes, then, for each
//! plane whose divisor is above 255, in their order, the high bytes. So `(low + 256 * high) / divisor`, in f32, has the
//! bits that `encode` writes. It knows nothing of evaluators.

use crate::game::Game;

/// How a game's planes are bytes; see [`Game::plane_divisors`].
pub struct PlaneBytes {
    divisors: Vec<u16>,
    /// Numbers of the planes with high bytes.
    wide: Vec<usize>,
    height: usize,
    width: usize,
}

impl PlaneBytes {
    /// The bytes of `state`'s game; `None` where its planes are no bytes (or it says nonsense of them).
    pub fn of<G: Game>(state: &G) -> Option<Self> {
        let [planes, height, width] = state.obs_shape();
        let divisors = state.plane_divisors()?;
        if divisors.len() != planes || divisors.contains(&0) {
            return None;
        }
        let wide = (0..planes).filter(|&plane| divisors[plane] > 255).collect();
        Some(Self { divisors, wide, height, width })
    }

    /// Of each of the C planes.
    #[must_use]
    pub fn divisors(&self) -> &[u16] {
        &self.divisors
    }

    /// `[C', H, W]` of a row of bytes.
    #[must_use]
    pub fn shape(&self) -> [usize; 3] {
        [self.divisors.len() + self.wide.len(), self.height, self.width]
    }

    /// Zeros for a row of floats `[C, H, W]`.
    #[must_use]
    pub fn floats(&self) -> Vec<f32> {
        vec![0.0; self.divisors.len() * self.height * self.width]
    }

    /// Writes the bytes `[C', H, W]` of planes `[C, H, W]` that `encode` wrote.
    ///
    /// # Panics
    /// When a slice has another length.
    pub fn write(&self, planes: &[f32], row: &mut [u8]) {
        let (cells, low) = (self.height * self.width, self.divisors.len());
        assert_eq!(
            (planes.len(), row.len()),
            (low * cells, (low + self.wide.len()) * cells),
            "floats and bytes of a row"
        );
        let (low, high) = row.split_at_mut(low * cells);
        for ((plane, bytes), &divisor) in
            planes.chunks_exact(cells).zip(low.chunks_exact_mut(cells)).zip(&self.divisors)
        {
            for (byte, &value) in bytes.iter_mut().zip(plane) {
                // Rounded, as the quotient of a division was.
                *byte = numerator(value, divisor) as u8;
            }
        }
        for (bytes, &plane) in high.chunks_exact_mut(cells).zip(&self.wide) {
            for (byte, &value) in bytes.iter_mut().zip(&planes[plane * cells..]) {
                *byte = (numerator(value, self.divisors[plane]) >> 8) as u8;
            }
        }
    }
}

/// The whole number that was divided.
#[inline]
fn numerator(value: f32, divisor: u16) -> u32 {
    let whole = (value * f32::from(divisor) + 0.5) as u32;
    debug_assert!(whole as f32 / f32::from(divisor) == value, "{value} is no whole number over {divisor}");
    whole
}
