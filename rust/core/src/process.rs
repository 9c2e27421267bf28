//! Which process something was made in: a fork copies the memory and leaves the threads behind.

/// The process that something with threads or locks was made in.
#[derive(Clone, Copy, Debug)]
pub struct Process(u32);

impl Process {
    /// This one.
    #[must_use]
    pub fn current() -> Self {
        Self(std::process::id())
    }

    /// Whether it is still this one. In a fork of it none of its threads run, and a lock that one of them held in that
    /// moment stays locked for ever.
    #[must_use]
    pub fn is_current(self) -> bool {
        self.0 == std::process::id()
    }
}
