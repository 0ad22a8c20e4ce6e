use std::sync::Arc;

use super::channel::{BodyFault, ChannelFault};
use super::frame::FrameHeader;
use super::hello::{ChannelId, ClusterKey, HelloSettings, Identity};
use super::link::{Actions, Link, LinkEvent, LinkSink};
use crate::address::NodeId;
use crate::block::SignalClass;
use crate::context::Time;

mod adversary;
mod channel;
mod fencing;

const CHANNEL: ChannelId = ChannelId { channel: 0, channels: 1 };

fn settings(node: u8, incarnation: u32) -> Arc<HelloSettings> {
    let own = Identity { cluster: 77, node: NodeId(node), incarnation };
    Arc::new(HelloSettings { own, key: ClusterKey([9; 32]), versions: (1, 1), layouts: u64::from })
}

/// Takes numbered records and checks that none is missing, repeated or out of order.
#[derive(Debug, Default)]
struct Numbers {
    next: u64,
    /// Bytes of deferrable records that wait here.
    waiting: u64,
    heartbeats: u64,
}

impl LinkSink for Numbers {
    fn begin(&mut self, incarnation: u32, version: u16) {
        assert!(incarnation > 0 && version == 1);
        *self = Self::default();
    }

    fn records(&mut self, header: &FrameHeader, body: &[u8]) -> Result<u64, ChannelFault> {
        let mut rest = body;
        for _ in 0..header.signals {
            let (length, after) = rest.split_first_chunk::<4>().ok_or(ChannelFault::Body(BodyFault::Length))?;
            let (record, after) = after
                .split_at_checked(u32::from_le_bytes(*length) as usize)
                .ok_or(ChannelFault::Body(BodyFault::Length))?;
            assert_eq!(record[..8], self.next.to_le_bytes(), "records arrive once and in order");
            self.next += 1;
            rest = after;
        }
        assert!(rest.is_empty());
        self.waiting += u64::from(header.deferrable);
        Ok(0)
    }

    fn hears(&mut self, _nodes: &[u8; 32]) {
        self.heartbeats += 1;
    }
}

/// Sends the record of a number, padded to `length` bytes.
fn push(link: &mut Link, number: u64, length: usize, class: SignalClass) {
    let appended: Result<(), ()> = link.channel().push(class, 1, |out| {
        out.extend_from_slice(&(length as u32).to_le_bytes());
        out.extend_from_slice(&number.to_le_bytes());
        out.resize(out.len() + length - 8, number as u8);
        Ok(())
    });
    assert_eq!(appended, Ok(()));
}

/// A link of node 2 to life 9 of node 1, whose life 5 has ended.
pub(super) fn restarted_link() -> Link {
    let ([_, two], ..) = fencing::restarted();
    two.link
}

/// One end of a link with its driver.
struct End {
    link: Link,
    numbers: Numbers,
    sent: u64,
    actions: Actions,
    events: Vec<LinkEvent>,
}

impl End {
    fn new(own: (u8, u32), peer: u8, now: Time) -> Self {
        let link = Link::new(settings(own.0, own.1), NodeId(peer), CHANNEL, now);
        Self { link, numbers: Numbers::default(), sent: 0, actions: Actions::default(), events: Vec::new() }
    }

    fn receive(&mut self, id: u64, bytes: &[u8], now: Time) {
        self.link.receive(id, bytes, (now, 1), (&mut self.actions, &mut self.numbers));
    }

    /// The output of the link for its connection.
    fn write(&mut self, now: Time) -> Option<(u64, Vec<u8>)> {
        let mut output = Vec::new();
        let id = self.link.write((now, 1), &[0; 32], (&mut output, 64 << 10), &mut self.actions)?;
        Some((id, output))
    }

    fn deaths(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, LinkEvent::Dead(..))).count()
    }
}
