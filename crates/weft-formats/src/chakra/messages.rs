//! The messages of a file, each behind its length.

use super::et_def::GlobalMetadata;
use crate::error::{FilePlace, TraceError};
use crate::input::{Input, InputReader};
use prost::Message as _;
use std::sync::Arc;

/// Longest message that is believed. In memory one takes up to forty times as much.
const MAX_MESSAGE_BYTES: u64 = 4 << 20;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Bytes of the longest number in protobuf's form.
const MAX_VARINT_BYTES: usize = 10;

/// Tags of the fields of `GlobalMetadata`: the version, a text, and attributes, messages.
const VERSION_TAG: u8 = 0x0a;
const ATTRIBUTE_TAG: u8 = 0x12;

/// Whether a file begins with metadata that say something, as far as `head` goes.
pub(super) fn knows(head: &[u8]) -> bool {
    let Some((length, mut rest)) = varint(head) else { return false };
    if length > MAX_MESSAGE_BYTES {
        return false;
    }
    let mut left = length;
    let mut fields = 0;
    while left > 0 && !rest.is_empty() {
        let tag = rest[0];
        let Some((size, behind)) = varint(&rest[1..]) else { return fields > 0 };
        let taken = (rest.len() - behind.len()) as u64 + size;
        let begins = |wanted: u8| behind.first().is_none_or(|first| *first == wanted);
        let is_field = match tag {
            VERSION_TAG => behind.iter().take(size as usize).all(u8::is_ascii_graphic),
            // Each begins with its name, the field 1.
            ATTRIBUTE_TAG => begins(VERSION_TAG),
            _ => false,
        };
        if !is_field || taken > left {
            return false;
        }
        fields += 1;
        left -= taken;
        rest = behind.get(size as usize..).unwrap_or_default();
    }
    fields > 0
}

/// A number at the begin of bytes, and what is behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut rest = bytes.get(..bytes.len().min(MAX_VARINT_BYTES))?;
    let before = rest.len();
    let number = prost::encoding::decode_varint(&mut rest).ok()?;
    Some((number, &bytes[before - rest.len()..]))
}

/// The messages of a file behind its metadata.
pub(super) struct ChakraMessages {
    reader: InputReader,
}

/// A message.
pub(super) struct ChakraMessage<'m> {
    /// The place of its length in the file.
    pub(super) place: u64,
    pub(super) bytes: &'m [u8],
}

impl ChakraMessages {
    /// Reads the metadata.
    pub(super) fn open(input: &Arc<Input>) -> Result<ChakraMessages, TraceError> {
        let mut messages = ChakraMessages { reader: InputReader::new(input, 0..u64::MAX, CHUNK) };
        let metadata = messages.next()?.map(|message| GlobalMetadata::decode(message.bytes));
        let error = match metadata {
            Some(Ok(_)) => return Ok(messages),
            Some(Err(error)) => error.to_string(),
            None => "it is empty".to_owned(),
        };
        let reason = format!(
            "does not begin as a Chakra trace, with GlobalMetadata ({error}); copy it again, or name another \
             file"
        );
        Err(input.error(FilePlace::Byte(0), reason))
    }

    /// The next message; `None`: there are no more.
    pub(super) fn next(&mut self) -> Result<Option<ChakraMessage<'_>>, TraceError> {
        if self.reader.rest() == 0 {
            return Ok(None);
        }
        let place = self.reader.position();
        let mut length = Vec::with_capacity(MAX_VARINT_BYTES);
        while length.len() < MAX_VARINT_BYTES && length.last().is_none_or(|byte| byte & 0x80 != 0) {
            length.extend(self.reader.take::<1>()?);
        }
        let length = varint(&length).map(|(length, _)| length).filter(|length| *length <= MAX_MESSAGE_BYTES);
        let Some(length) = length else {
            let reason = format!(
                "no length of a message of at most {MAX_MESSAGE_BYTES} bytes; the file is damaged: copy it"
            );
            return Err(self.reader.input().error(FilePlace::Byte(place), reason));
        };
        Ok(Some(ChakraMessage { place, bytes: self.reader.slice(length as usize)? }))
    }
}
