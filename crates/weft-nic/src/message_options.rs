//! Options of a message that are an interface's own.
//!
//! ```text
//!   host ── MessageOptions::of(&CompletionPath::Direct) ──► Message ──► apenetx: get::<CompletionPath>()
//!                                                                  └──► others do not look
//! ```

use std::any::Any;

/// The options of a message, as a type of the interface that has them. An interface looks for its own type,
/// and carries messages with another one as it carries those without any.
#[derive(Clone, Copy, Debug, Default)]
pub struct MessageOptions(Option<&'static (dyn Any + Send + Sync)>);

impl MessageOptions {
    /// The interface carries the message as it likes.
    pub const NONE: MessageOptions = MessageOptions(None);

    /// These options, of the interface that knows their type.
    pub const fn of<O: Any + Send + Sync>(options: &'static O) -> MessageOptions {
        MessageOptions(Some(options))
    }

    /// The options of this type; `None`: there are none, or of another interface.
    #[inline]
    pub fn get<O: Any>(self) -> Option<&'static O> {
        self.0.and_then(|options| options.downcast_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches options of one interface that another one takes for its own.
    #[test]
    fn options_are_seen_by_the_interface_of_their_type_only() {
        let options = MessageOptions::of(&7u8);
        assert_eq!(options.get::<u8>(), Some(&7));
        assert_eq!(options.get::<i8>(), None);
        assert_eq!(MessageOptions::NONE.get::<u8>(), None);
    }
}
