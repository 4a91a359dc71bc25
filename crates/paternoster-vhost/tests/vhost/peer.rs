//! The front-end of rust-vmm's `vhost` at the other end of a socket: a peer that we did not write.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;

use paternoster_vhost::blk::Device;
use paternoster_vhost::{Answer, Offer, Order, Output, Progress, Sealed, Session};
use rustix::io::IoSlice;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use vhost::vhost_user::message::{
    VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserInflight, VhostUserProtocolFeatures,
};
use vhost::vhost_user::{Frontend, VhostUserFrontend as _};
use vhost::{VhostBackend as _, VhostUserMemoryRegionInfo, VringConfigData};
use vmm_sys_util::eventfd::EventFd;

use crate::driver::memfd;

fn device() -> Device {
    Device {
        size: 1 << 20,
        block: 4096,
        discard: 4096,
        queues: 4,
        read_only: false,
        flushes: true,
        unmaps: true,
    }
}

/// Serves a session until the front-end hangs up. Returns the orders that there were, by name.
fn serve(socket: &UnixStream) -> Vec<String> {
    let device = device();
    let (features, config) = (device.features(), device.config(true));
    let (queues, sealed) = (device.queues, Sealed::Required);
    let mut session = Session::new(Offer { features, config, queues, sealed });
    let mut orders = Vec::new();
    loop {
        let mut bytes = vec![0; session.wanted()];
        let (count, descriptors) = receive(socket, &mut bytes);
        if count == 0 {
            return orders;
        }
        let progress = session.receive(&bytes[..count], descriptors).expect("it is obeyed");
        if let Progress::Order(order) = progress {
            let answer = match &order {
                Order::Stop(_) => Answer::Base(42),
                _ => Answer::Done,
            };
            let name = format!("{order:?}");
            orders.push(name.split(['(', ' ']).next().unwrap_or_default().to_owned());
            session.answer(answer).expect("it is obeyed");
        }
        if let Some(output) = session.take_output() {
            send(socket, &output);
        }
    }
}

fn receive(socket: &UnixStream, bytes: &mut [u8]) -> (usize, Vec<OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(32))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let message = recvmsg(socket, &mut [IoSliceMut::new(bytes)], &mut control, flags);
    let message = message.expect("a message");
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => Some(rights),
        _ => None,
    });
    let descriptors = rights.flatten().collect();
    (message.bytes, descriptors)
}

fn send(socket: &UnixStream, output: &Output) {
    use std::os::fd::AsFd as _;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptor = output.descriptor.as_ref().map(|descriptor| [descriptor.as_fd()]);
    if let Some(descriptor) = &descriptor {
        assert!(control.push(SendAncillaryMessage::ScmRights(descriptor)));
    }
    let sent = sendmsg(socket, &[IoSlice::new(&output.bytes)], &mut control, SendFlags::empty());
    assert_eq!(sent, Ok(output.bytes.len()));
}

/// Agrees on all features, and reads and writes the configuration.
fn agree(front_end: &mut Frontend) {
    front_end.set_owner().expect("it is obeyed");
    let features = front_end.get_features().expect("a reply");
    assert_eq!(features, device().features().bits());
    let protocol = front_end.get_protocol_features().expect("a reply");
    assert!(protocol.contains(VhostUserProtocolFeatures::INFLIGHT_SHMFD));
    front_end.set_protocol_features(protocol).expect("it is obeyed");
    front_end.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
    front_end.set_features(features).expect("it is obeyed");
    assert_eq!(front_end.get_queue_num().expect("a reply"), 4);
    assert_eq!(front_end.get_max_mem_slots().expect("a reply"), 509);
    let (_, config) =
        front_end.get_config(0, 60, VhostUserConfigFlags::empty(), &[0; 60]).expect("a reply");
    assert_eq!(config, device().config(true));
    front_end.set_config(32, VhostUserConfigFlags::WRITABLE, &[0]).expect("it is obeyed");
    assert!(front_end.set_config(0, VhostUserConfigFlags::WRITABLE, &[0]).is_err());
}

#[test]
fn front_end_of_others_sets_a_device_up_and_stops_it() {
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let server = thread::spawn(move || serve(&ours));
    let mut front_end = Frontend::from_stream(theirs, 4);

    agree(&mut front_end);

    let asked = VhostUserInflight::new(0, 0, 4, 128);
    let (given, file) = front_end.get_inflight_fd(&asked).expect("a reply");
    assert_eq!((given.num_queues, given.queue_size), (4, 128));
    assert_eq!(file.metadata().expect("a file").len(), given.mmap_size);
    front_end.set_inflight_fd(&given, file.as_raw_fd()).expect("it is obeyed");

    let memory = memfd(1 << 20);
    let region = VhostUserMemoryRegionInfo {
        guest_phys_addr: 0,
        memory_size: 1 << 20,
        userspace_addr: 1 << 40,
        mmap_offset: 0,
        mmap_handle: memory.as_raw_fd(),
    };
    front_end.set_mem_table(&[region]).expect("it is obeyed");
    let [kick, call, broken] = [(); 3].map(|()| EventFd::new(0).expect("a descriptor"));
    front_end.set_vring_num(2, 128).expect("it is obeyed");
    front_end.set_vring_base(2, 0).expect("it is obeyed");
    let config = VringConfigData {
        queue_max_size: 128,
        queue_size: 128,
        flags: 0,
        desc_table_addr: 1 << 40,
        used_ring_addr: (1 << 40) + 0x2000,
        avail_ring_addr: (1 << 40) + 0x1000,
        log_addr: None,
    };
    front_end.set_vring_addr(2, &config).expect("it is obeyed");
    front_end.set_vring_call(2, &call).expect("it is obeyed");
    front_end.set_vring_err(2, &broken).expect("it is obeyed");
    front_end.set_vring_kick(2, &kick).expect("it is obeyed");
    front_end.set_vring_enable(2, true).expect("it is obeyed");
    assert_eq!(front_end.get_vring_base(2).expect("a reply"), 42);
    front_end
        .add_mem_region(&VhostUserMemoryRegionInfo {
            guest_phys_addr: 1 << 32,
            userspace_addr: 1 << 41,
            ..region
        })
        .expect("it is obeyed");
    drop(front_end);
    let orders = server.join().expect("it serves to the end");
    assert_eq!(
        orders,
        ["Features", "Writeback", "Inflight", "Memory", "Start", "Enable", "Stop", "Memory",]
    );
}
