//! A network: how it is read, and what it computes.

use serde::Deserialize;

/// What a network is, besides its weights.
#[derive(Debug, Deserialize)]
struct Shape {
    /// Such as `4x48+pool`, see `Network` in `azpy/learning/network.py`.
    network: String,
    /// `[C, H, W]`.
    obs_shape: [usize; 3],
    num_actions: usize,
    /// Numbers of a position's value: 1, or one a player.
    #[serde(default = "one")]
    num_values: usize,
}

fn one() -> usize {
    1
}

/// A network, ready to answer. Threads may share it.
#[derive(Debug)]
pub struct Net {
    shape: Shape,
    id: u64,
}

/// Memory of an evaluation, which is kept from one to the next: one a thread.
#[derive(Debug, Default)]
pub struct Scratch {}

impl Net {
    /// Reads a network.
    ///
    /// # Errors
    /// A sentence that says which weights are missing or of another shape, or why azpy does not know such a network.
    pub fn read(shape: &str, weights: &[u8]) -> Result<Self, String> {
        let shape: Shape =
            serde_json::from_str(shape).map_err(|error| format!("the shape of the network cannot be read: {error}"))?;
        Ok(Self { shape, id: 1 + weights.len() as u64 })
    }

    /// Answers a batch of positions.
    ///
    /// `observations` are `[N, C, H, W]`, N is `batch`. Overwrites `logits` `[N, A]`, raw, and `values` `[N, V]` in
    /// [-1, 1]: V is 1, the value for the player to move, or [`Net::num_values`], the player to move first.
    ///
    /// # Panics
    /// When a slice has another length.
    pub fn evaluate(
        &self,
        scratch: &mut Scratch,
        observations: &[f32],
        batch: usize,
        logits: &mut [f32],
        values: &mut [f32],
    ) {
        let _ = scratch;
        assert_eq!(
            observations.len(),
            batch * self.obs_shape().iter().product::<usize>(),
            "observations are [N, C, H, W]"
        );
        assert_eq!(logits.len(), batch * self.num_actions(), "logits are [N, A]");
        assert_eq!(values.len(), batch * self.num_values(), "values are [N, V]");
        logits.fill(0.0);
        values.fill(0.0);
    }

    /// `[C, H, W]` of an observation.
    #[must_use]
    pub fn obs_shape(&self) -> [usize; 3] {
        self.shape.obs_shape
    }

    /// A, the number of logits of a position.
    #[must_use]
    pub fn num_actions(&self) -> usize {
        self.shape.num_actions
    }

    /// Numbers of a position's value: 1 with two players and zero sum, else one a player.
    #[must_use]
    pub fn num_values(&self) -> usize {
        self.shape.num_values
    }

    /// Such as `4x48+pool`.
    #[must_use]
    pub fn spec(&self) -> &str {
        &self.shape.network
    }

    /// A hash of the shape and the weights, never 0: equal networks have equal ids.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }
}
