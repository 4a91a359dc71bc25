# A write that the server has answered fails between the page cache and the device. The server that
# goes on has the same file open, and so tells of it, though somebody else has heard of it before.
sectors=$(cat /sys/class/block/vda/size)
cache=page
dmsetup create fails --table "0 $sectors linear /dev/vda 0"
serve /dev/dm-0
nbd-client -timeout 5 -unix nbd.sock -name disk /dev/nbd0
within 10 grep -q '^[1-9]' /sys/block/nbd0/size

# Without a look at what is in the page cache, which would be written before.
set_table() {
    dmsetup suspend --nolockfs fails
    dmsetup load fails --table "$1"
    dmsetup resume fails
}
# A flush of a device, and nothing else.
flush() {
    dd if=/dev/null of="$1" conv=fsync,notrunc 2>/tmp/dd
}

dd if=/tmp/noise of=/dev/nbd0 bs=4k count=1 oflag=direct 2>/tmp/dd
set_table "0 $sectors error"
sync
set_table "0 $sectors linear /dev/vda 0"
if flush /dev/dm-0; then echo "guest: failed, the write has not"; false; fi
flush /dev/dm-0
take_over
if flush /dev/nbd0; then echo "guest: failed, nobody has told the client"; false; fi
take_over
if flush /dev/nbd0; then echo "guest: failed, what was told is forgotten"; false; fi
echo "guest: errors of a sync in the log $(grep -c 'a sync failed' server.log)"
nbd-client -d /dev/nbd0
