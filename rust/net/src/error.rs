//! Why a network is refused.

/// What is wrong with a network, its weights, or the game that it is asked about.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The JSON of the network's shape.
    #[error("the network's shape cannot be read: {0}")]
    Json(String),
    /// A shape that no network of azpy has.
    #[error("{0}")]
    Shape(String),
    /// A network in Python: its code is not here.
    #[error(
        "the network {0} is a torch module, and azpy-net computes only azpy's own networks: use its ONNX \
         model with ONNX Runtime"
    )]
    Module(String),
    /// The file of the weights.
    #[error("the weights cannot be read as safetensors: {0}")]
    Safetensors(String),
    /// Weights that are missing or of another shape.
    #[error("the weights do not fit this network: {name} is {found}, expected float32 {expected:?}")]
    OtherNetwork {
        /// As torch names them.
        name: String,
        /// Their type and shape, or that they are missing.
        found: String,
        /// The shape that the network has.
        expected: Vec<usize>,
    },
    /// Weights that are no numbers of a network.
    #[error("the weights are damaged: {name} {problem}")]
    Damaged {
        /// As torch names them.
        name: String,
        /// What is wrong with them.
        problem: &'static str,
    },
    /// A game of another shape than the network's.
    #[error(
        "the network does not fit the game: it takes observations {:?} and gives {} logits and {} numbers as the value, \
         expected {:?}, {} and {}",
        .network.0, .network.1, .network.2, .game.0, .game.1, .game.2
    )]
    OtherGame {
        /// `[C, H, W]` of observations, logits and numbers of the value.
        network: ([usize; 3], usize, usize),
        /// The same of the game.
        game: ([usize; 3], usize, usize),
    },
}
