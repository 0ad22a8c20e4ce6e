//! Hellos: whatever a stranger sends, a link opens no channel, keeps few bytes and has few connections under
//! way. The first byte says to which stage of a hello the rest is sent.
#![no_main]

use std::sync::Arc;

use junctor_kernel::transport::channel::ChannelFault;
use junctor_kernel::transport::frame::FrameHeader;
use junctor_kernel::transport::hello::{
    ChannelId, ClusterKey, HelloReader, HelloSettings, Identity, MESSAGE_BYTES_MAX, route,
};
use junctor_kernel::transport::link::{Actions, Link, LinkSink};
use junctor_kernel::{NodeId, Time};
use libfuzzer_sys::fuzz_target;

const CHANNEL: ChannelId = ChannelId { channel: 0, channels: 1 };
const NOW: Time = Time(1_000_000);

/// Nothing may arrive.
struct Nothing;

impl LinkSink for Nothing {
    fn begin(&mut self, _: u32, _: u16) {
        panic!("a stranger has begun a channel");
    }

    fn records(&mut self, _: &FrameHeader, _: &[u8]) -> Result<u64, ChannelFault> {
        panic!("a stranger has sent signals");
    }

    fn hears(&mut self, _: &[u8; 32]) {
        panic!("a stranger has sent a heartbeat");
    }
}

fn link(own: u8, peer: u8) -> Link {
    let own = Identity { cluster: 7, node: NodeId(own), incarnation: 3 };
    let settings = HelloSettings { own, key: ClusterKey([9; 32]), versions: (1, 2), layouts: u64::from };
    Link::new(Arc::new(settings), NodeId(peer), CHANNEL, NOW)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&how, bytes)) = bytes.split_first() else { return };
    let mut actions = Actions::default();
    let mut reader = HelloReader::default();
    let mut input = bytes;
    match how % 3 {
        // The connection's first message.
        0 => {
            while let Ok(Some(message)) = reader.read(&mut input) {
                assert!(message.len() <= MESSAGE_BYTES_MAX);
                let _ = route(&message);
                let mut link = link(2, 1);
                link.on_hello(1, &message, (NOW, [5; 32]), &mut actions);
                link.receive(1, input, (NOW, 1), (&mut actions, &mut Nothing));
                assert!(!link.is_up() && link.incarnation().is_none());
            }
        }
        // In place of the proof, behind an honest hello.
        1 => {
            let (mut one, mut two) = (link(1, 2), link(2, 1));
            one.on_connecting(1, [4; 32], NOW, &mut actions);
            let (_, hello) = actions.sends.remove(0);
            two.on_hello(1, &hello, (NOW, [5; 32]), &mut actions);
            two.receive(1, bytes, (NOW, 1), (&mut actions, &mut Nothing));
            assert!(!two.is_up() && two.incarnation().is_none());
        }
        // In place of the challenge.
        _ => {
            let mut one = link(1, 2);
            one.on_connecting(1, [4; 32], NOW, &mut actions);
            one.receive(1, bytes, (NOW, 1), (&mut actions, &mut Nothing));
            assert!(!one.is_up() && one.incarnation().is_none());
        }
    }
});
