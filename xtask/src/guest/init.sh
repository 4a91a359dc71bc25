#!/bin/busybox sh
# The guest's first process: it makes the guest ready, does the part that the kernel's command line
# names, and switches off. Lines that begin with "guest: " are what the host reads.
/bin/busybox --install -s /bin
export PATH=/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /tmp
mount -t tmpfs run /run
for module in $(cat /modules); do
    insmod "/lib/modules/$module" || echo "guest: failed to load $module"
done
cd /run

# Serves the device, under the settings of the kernel's command line.
serve() {
    cat >server.toml <<END
unix = "/run/nbd.sock"
threads = ${threads:-1}
[disks.d]
path = "$1"
scheduler = "${scheduler:-auto}"
cache = "${cache:-direct}"
[exports.disk]
disk = "d"
vhost_user = "/run/disk.vhost"
END
    rm -f uris
    paternoster serve server.toml >uris 2>>server.log &
    server=$!
    within 20 test -s uris
}

# Has another server go on where the one that runs stops, which ends.
take_over() {
    before=$server
    paternoster serve server.toml --take-over >uris 2>>server.log &
    server=$!
    wait "$before"
}

# Waits until a command succeeds, so many seconds at most.
within() {
    left=$(($1 * 10))
    shift
    while ! "$@"; do
        left=$((left - 1))
        [ $left -gt 0 ] || { echo "guest: failed, it is never so: $*"; return 1; }
        sleep 0.1
    done
}

echo "guest: kernel $(uname -r), up after $(cut -d ' ' -f 1 /proc/uptime) s"
(set -e; . "/$part.sh") && echo "guest: end" || { echo "guest: failed in $part"; cat server.log; }
poweroff -f
