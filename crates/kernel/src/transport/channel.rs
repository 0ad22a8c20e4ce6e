//! Hot path: at most 60 instructions for a signal that is sent, not counting its encoding and its checksum.
//!
//! A channel: signals from one incarnation of a node to one incarnation of another, and back. Every signal
//! arrives once and in order, however many connections carry the channel one after the other.
//!
//! The sender numbers its frames and keeps each until the receiver acknowledges it. After a reset the next
//! connection begins with the first frame that the other side has not received.
//!
//! Reserved signals are always sent. Deferrable signals spend credits, counted in bytes: the receiver grants
//! them, and grants more as its threads take what arrived. The receiver thus keeps at most [`CREDIT_BYTES`]
//! of deferrable signals, and one more signal.

use std::collections::VecDeque;
use std::fmt;

use super::frame::{BODY_BYTES_MAX, FrameHeader, FrameKind, HEADER_BYTES};
use crate::block::SignalClass;
use crate::wire_signal::DecodeError;

/// Bytes of deferrable signals that may wait at the receiver.
pub const CREDIT_BYTES: u64 = 1 << 20;

/// Deferrable signals wait while this many bytes are not acknowledged.
pub const WINDOW_BYTES: usize = 4 << 20;

/// A channel with more unacknowledged bytes than this is broken: the other side has not answered for long,
/// and reserved signals cannot wait.
pub const UNACKNOWLEDGED_BYTES_MAX: usize = 2 << 30;

/// A frame is closed when its body has this many bytes.
const FRAME_BYTES: usize = 32 << 10;

/// An acknowledgement is sent at once after this many bytes; a smaller number waits for the next frame or
/// heartbeat.
const ACKNOWLEDGE_BYTES: usize = 256 << 10;

/// New credits are told at once when there are this many.
const GRANT_BYTES: u64 = CREDIT_BYTES / 4;

/// Maximum number of emptied frames kept for reuse.
const SPARE_FRAMES_MAX: usize = 16;

/// Largest capacity of an emptied frame that is kept.
const SPARE_BYTES_MAX: usize = 2 * FRAME_BYTES;

/// Why the body of a frame does not consist of signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFault {
    /// The signal with this number cannot be decoded.
    Signal(u16, DecodeError),
    /// The signal with this number is for another node, from another node, or for a block that does not
    /// exist.
    Address(u16),
    /// The frame has more or fewer bytes than its signals.
    Length,
}

impl fmt::Display for BodyFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal(number, error) => write!(formatter, "signal {number:#06x}: {error}"),
            Self::Address(number) => write!(formatter, "signal {number:#06x} is for no block of this node"),
            Self::Length => formatter.write_str("its length is wrong"),
        }
    }
}

/// Why a channel cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelFault {
    /// A frame is missing: this number was expected, the second arrived. The connection is reset.
    Gap(u64, u64),
    /// The other side acknowledges a frame that was never sent, or has forgotten frames that it had
    /// acknowledged. It cannot be the incarnation that it claims to be.
    Acknowledgement(u64),
    /// The frame is for another channel.
    Channel(u8),
    /// The body does not consist of signals for this node.
    Body(BodyFault),
    /// Too many bytes are not acknowledged.
    Overrun,
}

impl ChannelFault {
    /// Whether another connection cannot help.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Gap(..))
    }
}

impl fmt::Display for ChannelFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap(expected, arrived) => write!(formatter, "frame {arrived} arrived in place of {expected}"),
            Self::Acknowledgement(number) => write!(formatter, "the acknowledgement of frame {number} is impossible"),
            Self::Channel(channel) => write!(formatter, "the frame belongs to channel {channel}"),
            Self::Body(fault) => write!(formatter, "a frame does not consist of signals: {fault}"),
            Self::Overrun => formatter.write_str("too many bytes are not acknowledged"),
        }
    }
}

/// One channel at one of its ends.
#[derive(Debug)]
pub struct Channel {
    number: u8,
    /// The frame being formed: space for its header, then signals.
    open: Vec<u8>,
    open_signals: u16,
    /// Bytes of deferrable signals in `open`.
    open_deferrable: usize,
    /// Formed and not acknowledged, in order of their numbers.
    frames: VecDeque<SentFrame>,
    /// Number of the oldest frame in `frames`.
    oldest: u64,
    /// Number of frames in `frames` that the present connection already carries.
    written: usize,
    unacknowledged_bytes: usize,
    /// Bytes of deferrable signals sent since the beginning.
    deferrable_sent: u64,
    /// The value that `deferrable_sent` may reach.
    deferrable_allowed: u64,
    spare: Vec<Vec<u8>>,
    /// All frames of the other side up to this number were received.
    received: u64,
    received_told: u64,
    /// Bytes received and not acknowledged yet.
    unanswered_bytes: usize,
    granted: u64,
    granted_told: u64,
}

#[derive(Debug)]
struct SentFrame {
    kind: FrameKind,
    signals: u16,
    epoch: u32,
    deferrable: u32,
    /// Header and body. The header is written when the frame is.
    bytes: Vec<u8>,
    body_checksum: u32,
}

/// What to do with a frame that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Handle its signals.
    New,
    /// A repetition, or a heartbeat: the frame has no signals to handle.
    Known,
}

impl Channel {
    /// The channel of this number, without a connection.
    pub fn new(number: u8) -> Self {
        Self {
            number,
            open: Vec::new(),
            open_signals: 0,
            open_deferrable: 0,
            frames: VecDeque::new(),
            oldest: 1,
            written: 0,
            unacknowledged_bytes: 0,
            deferrable_sent: 0,
            deferrable_allowed: 0,
            spare: Vec::new(),
            received: 0,
            received_told: 0,
            unanswered_bytes: 0,
            granted: CREDIT_BYTES,
            granted_told: 0,
        }
    }

    /// Whether a signal of this class may be sent now. Reserved signals always may.
    #[inline]
    pub fn accepts(&self, class: SignalClass) -> bool {
        class == SignalClass::Reserved
            || self.deferrable_sent + (self.open_deferrable as u64) < self.deferrable_allowed
                && self.unacknowledged_bytes < WINDOW_BYTES
    }

    /// Adds a signal, whose record `append` appends. The signal is sent with the next [`Channel::write`].
    ///
    /// # Errors
    /// The error of `append`, which must then have appended nothing.
    pub fn push<E>(
        &mut self,
        class: SignalClass,
        epoch: u32,
        append: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.open.is_empty() {
            self.open = self.spare.pop().unwrap_or_default();
            self.open.resize(HEADER_BYTES, 0);
        }
        let start = self.open.len();
        append(&mut self.open)?;
        if class == SignalClass::Deferrable {
            self.open_deferrable += self.open.len() - start;
        }
        self.open_signals += 1;
        if self.open.len() >= FRAME_BYTES || self.open_signals == u16::MAX {
            self.close_frame(epoch);
        }
        Ok(())
    }

    /// Ends the frame being formed. Its signals were sent in this epoch.
    pub fn close_frame(&mut self, epoch: u32) {
        if self.open_signals == 0 {
            return;
        }
        let mut bytes = std::mem::take(&mut self.open);
        let signals = std::mem::take(&mut self.open_signals);
        let deferrable = std::mem::take(&mut self.open_deferrable);
        self.deferrable_sent += deferrable as u64;
        while bytes.len() > HEADER_BYTES + BODY_BYTES_MAX {
            let rest = bytes[BODY_BYTES_MAX..].to_vec();
            bytes.truncate(HEADER_BYTES + BODY_BYTES_MAX);
            self.add_frame(SentFrame {
                kind: FrameKind::Part,
                signals: 0,
                epoch,
                deferrable: 0,
                bytes,
                body_checksum: 0,
            });
            bytes = rest;
        }
        let (kind, deferrable) = (FrameKind::Signals, deferrable as u32);
        self.add_frame(SentFrame { kind, signals, epoch, deferrable, bytes, body_checksum: 0 });
    }

    fn add_frame(&mut self, mut frame: SentFrame) {
        frame.body_checksum = crc32c::crc32c(&frame.bytes[HEADER_BYTES..]);
        self.unacknowledged_bytes += frame.bytes.len();
        self.frames.push_back(frame);
    }

    /// Whether formed frames, signals or an urgent acknowledgement wait for [`Channel::write`].
    #[inline]
    pub fn has_output(&self) -> bool {
        self.open_signals > 0 || self.written < self.frames.len() || self.owes_answer()
    }

    /// Whether the other side should hear of acknowledgements or credits before the next heartbeat.
    fn owes_answer(&self) -> bool {
        self.unanswered_bytes >= ACKNOWLEDGE_BYTES || self.granted - self.granted_told >= GRANT_BYTES
    }

    /// Appends frames to the output of the present connection until there are at least `bytes_max` bytes.
    /// Returns whether it appended anything.
    pub fn write(&mut self, epoch: u32, bytes_max: usize, output: &mut Vec<u8>) -> Result<bool, ChannelFault> {
        self.close_frame(epoch);
        if self.unacknowledged_bytes > UNACKNOWLEDGED_BYTES_MAX {
            return Err(ChannelFault::Overrun);
        }
        let mut is_written = false;
        while self.written < self.frames.len() && output.len() < bytes_max {
            let frame = &self.frames[self.written];
            let header = FrameHeader {
                kind: frame.kind,
                channel: self.number,
                signals: frame.signals,
                epoch: frame.epoch,
                deferrable: frame.deferrable,
                sequence: self.oldest + self.written as u64,
                acknowledged: self.received,
                granted: self.granted,
            };
            output.extend_from_slice(&header.encode(frame.bytes.len() - HEADER_BYTES, frame.body_checksum));
            output.extend_from_slice(&frame.bytes[HEADER_BYTES..]);
            self.written += 1;
            is_written = true;
        }
        if is_written {
            self.answered();
        } else if self.owes_answer() {
            self.write_heartbeat(epoch, &[], output);
            is_written = true;
        }
        Ok(is_written)
    }

    /// Appends a heartbeat with this body.
    pub fn write_heartbeat(&mut self, epoch: u32, body: &[u8], output: &mut Vec<u8>) {
        let header = FrameHeader {
            kind: FrameKind::Heartbeat,
            channel: self.number,
            signals: 0,
            epoch,
            deferrable: 0,
            sequence: 0,
            acknowledged: self.received,
            granted: self.granted,
        };
        header.write(body, output);
        self.answered();
    }

    fn answered(&mut self) {
        (self.received_told, self.granted_told, self.unanswered_bytes) = (self.received, self.granted, 0);
    }

    /// Takes the header of a frame that arrived.
    pub fn on_frame(&mut self, header: &FrameHeader, body_bytes: usize) -> Result<Arrival, ChannelFault> {
        if header.channel != self.number {
            return Err(ChannelFault::Channel(header.channel));
        }
        if header.acknowledged > self.last_written() {
            return Err(ChannelFault::Acknowledgement(header.acknowledged));
        }
        self.forget(header.acknowledged);
        self.deferrable_allowed = self.deferrable_allowed.max(header.granted);
        if header.kind == FrameKind::Heartbeat || header.sequence <= self.received {
            return Ok(Arrival::Known);
        }
        if header.sequence != self.received + 1 {
            return Err(ChannelFault::Gap(self.received + 1, header.sequence));
        }
        self.received += 1;
        self.unanswered_bytes += HEADER_BYTES + body_bytes;
        Ok(Arrival::New)
    }

    /// Drops frames up to an acknowledged number.
    fn forget(&mut self, acknowledged: u64) {
        while self.oldest <= acknowledged
            && let Some(SentFrame { mut bytes, .. }) = self.frames.pop_front()
        {
            self.oldest += 1;
            self.written -= 1;
            self.unacknowledged_bytes -= bytes.len();
            if self.spare.len() < SPARE_FRAMES_MAX && bytes.capacity() <= SPARE_BYTES_MAX {
                bytes.clear();
                self.spare.push(bytes);
            }
        }
    }

    /// Returns credits: deferrable signals of this many bytes do not wait here any longer.
    #[inline]
    pub fn grant(&mut self, bytes: u64) {
        self.granted += bytes;
    }

    /// All frames of the other side up to this number were received.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Begins with a new connection, over which the other side says how much it has received.
    pub fn attach(&mut self, received_by_peer: u64) -> Result<(), ChannelFault> {
        self.written = self.frames.len();
        let sent = self.oldest + self.frames.len() as u64 - 1;
        if received_by_peer > sent || received_by_peer + 1 < self.oldest {
            return Err(ChannelFault::Acknowledgement(received_by_peer));
        }
        self.forget(received_by_peer);
        self.written = 0;
        // The new connection tells everything again: the old one may have lost it.
        (self.received_told, self.granted_told, self.unanswered_bytes) = (0, 0, 0);
        Ok(())
    }

    /// The number of the last frame that the present connection carries. Frames are numbered from 1.
    pub fn last_written(&self) -> u64 {
        self.oldest + self.written as u64 - 1
    }

    /// Bytes that deferrable signals may still use.
    pub fn credit_bytes(&self) -> u64 {
        self.deferrable_allowed.saturating_sub(self.deferrable_sent)
    }

    /// Bytes that wait for an acknowledgement.
    pub fn unacknowledged_bytes(&self) -> usize {
        self.unacknowledged_bytes
    }
}
