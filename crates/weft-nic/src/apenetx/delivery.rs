//! The choices of a program for the delivery of a message.
//!
//! # Source
//! APX §3.3: the address of a buffer's completion, and so its path, is told at the handshake. D1.4 §9.2.2:
//! buffers of the host and of a GPU are registered.

use super::completion::CompletionPath;
use super::gpu::MemoryKind;
use crate::message_options::MessageOptions;

/// The choices for a message, each `None` where the machine's hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChosenDelivery {
    /// The path of the completion.
    pub completion: Option<CompletionPath>,
    /// The memory that the message is read from.
    pub source: Option<MemoryKind>,
    /// The memory that it is written to.
    pub target: Option<MemoryKind>,
}

const PATHS: [Option<CompletionPath>; 5] = [
    None,
    Some(CompletionPath::Kernel),
    Some(CompletionPath::Remapped),
    Some(CompletionPath::Direct),
    Some(CompletionPath::UserQueue),
];

const KINDS: [Option<MemoryKind>; 4] =
    [None, Some(MemoryKind::Host), Some(MemoryKind::GpuDirect), Some(MemoryKind::GpuStaged)];

/// All choices: options of a message are lent for ever.
static CHOICES: [ChosenDelivery; PATHS.len() * KINDS.len() * KINDS.len()] = {
    let mut all = [ChosenDelivery { completion: None, source: None, target: None }; 80];
    let mut place = 0;
    while place < all.len() {
        all[place] = ChosenDelivery {
            completion: PATHS[place / KINDS.len() / KINDS.len()],
            source: KINDS[place / KINDS.len() % KINDS.len()],
            target: KINDS[place % KINDS.len()],
        };
        place += 1;
    }
    all
};

impl ChosenDelivery {
    /// The options of a message that is delivered so.
    pub fn options(self) -> MessageOptions {
        CHOICES.iter().find(|choice| **choice == self).map_or(MessageOptions::NONE, MessageOptions::of)
    }

    /// Whether it needs a GPU.
    pub(super) fn needs_gpu(self) -> bool {
        let is_of_gpu = |kind: Option<MemoryKind>| !matches!(kind, None | Some(MemoryKind::Host));
        is_of_gpu(self.source) || is_of_gpu(self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a choice that a message loses, or that is another one's.
    #[test]
    fn every_choice_comes_with_its_message() {
        for completion in PATHS {
            for source in KINDS {
                for target in KINDS {
                    let choice = ChosenDelivery { completion, source, target };
                    assert_eq!(choice.options().get(), Some(&choice));
                }
            }
        }
    }
}
