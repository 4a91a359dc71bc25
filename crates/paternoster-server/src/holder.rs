//! Who has a socket that is in use, by name, as far as the system says it.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::path::Path;

use paternoster_disk::program;
use rustix::net::sockopt::socket_peercred;

/// The program that listens where this unix socket is connected to.
pub(crate) fn of_other_end(connected: impl AsFd) -> Option<String> {
    let credentials = socket_peercred(connected).ok()?;
    program(u32::try_from(credentials.pid.as_raw_pid()).ok()?)
}

/// The program that listens on a TCP port. Processes of other users are seen by root alone.
pub(crate) fn of_port(address: SocketAddr) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let mut inodes = tables.iter().flatten().flat_map(|table| listeners(table, address.port()));
    inodes
        .find_map(|(on, inode)| if meets(on, address.ip()) { process_with(inode) } else { None })
        .and_then(program)
}

/// Whether a socket on one address is in the way of one on the other; that of IPv6 on any address
/// has those of IPv4 too.
fn meets(one: Option<IpAddr>, other: IpAddr) -> bool {
    one.is_none_or(|one| one == other.to_canonical() || other.is_unspecified())
}

/// The sockets of a table of the kernel that listen on a port: on what address (none is any), and
/// its inode. The second field of a line has both as hexadecimal digits, the fourth is 0A where it
/// listens, the tenth is the inode.
fn listeners(table: &str, port: u16) -> Vec<(Option<IpAddr>, u64)> {
    let listener = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (local, state, inode) = (fields.get(1)?, fields.get(3)?, fields.get(9)?);
        let (address, of_port) = local.split_once(':')?;
        let listens = *state == "0A" && u16::from_str_radix(of_port, 16) == Ok(port);
        listens.then_some((address_of(address)?, inode.parse().ok()?))
    };
    table.lines().filter_map(listener).collect()
}

/// An address as the kernel prints it, in words of 32 bits of this machine. None in it is any.
#[expect(clippy::option_option, reason = "one is whether it can be read, one whether it is any")]
fn address_of(digits: &str) -> Option<Option<IpAddr>> {
    let word = |at: usize| {
        let word = u32::from_str_radix(digits.get(at..at + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    let words: Option<Vec<_>> = (0..digits.len()).step_by(8).map(word).collect();
    let bytes = words?.concat();
    let address: IpAddr = match <[u8; 4]>::try_from(&bytes[..]) {
        Ok(four) => four.into(),
        Err(_) => <[u8; 16]>::try_from(&bytes[..]).ok()?.into(),
    };
    Some(Some(address.to_canonical()).filter(|address| !address.is_unspecified()))
}

/// The process that has the socket of that inode open.
fn process_with(inode: u64) -> Option<u32> {
    let wanted = format!("socket:[{inode}]");
    let has = |process: &Path| {
        let mut open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        open.any(|fd| fs::read_link(fd.path()).is_ok_and(|to| to == Path::new(&wanted)))
    };
    let mut processes = fs::read_dir("/proc").ok()?.flatten();
    processes.find_map(|process| {
        let pid = process.file_name().to_str()?.parse().ok()?;
        has(&process.path()).then_some(pid)
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn own_port_is_this_programs_whatever_address_asks_for_it() {
        let ours = program(std::process::id());
        assert!(ours.is_some());
        let any = TcpListener::bind("0.0.0.0:0").expect("a port");
        let loopback = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = |of: &TcpListener| of.local_addr().expect("an address").port();
        let of = |host: &str, port| of_port(SocketAddr::new(host.parse().expect("one"), port));
        assert_eq!(of("127.0.0.1", port(&any)), ours);
        assert_eq!(of("127.0.0.1", port(&loopback)), ours);
        assert_eq!(of("0.0.0.0", port(&loopback)), ours);
        assert_eq!(of("127.0.0.2", port(&loopback)), None, "it is free there");
    }

    #[test]
    fn table_of_the_kernel_is_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                     uid  timeout inode\n   \
                     0: 0100007F:2A3B 00000000:0000 0A 00000000:00000000 00:00000000 00000000     \
                     0        0 4711 1 0 100 0 0 10 0\n   \
                     1: 00000000:2A3B 0100007F:1000 01 00000000:00000000 00:00000000 00000000     \
                     0        0 4712 1 0 100 0 0 10 0\n";
        let loopback = IpAddr::from(0x0100_007F_u32.to_ne_bytes());
        assert_eq!(listeners(table, 0x2A3B), [(Some(loopback), 4711)]);
        assert_eq!(listeners(table, 1), []);
    }
}
