# The kernel's client of a server of /dev/vda: ext4, ten hand-overs and a restart of the server under
# it.
. /files.sh
serve /dev/vda
# The kernel sends a request again whose answer is not there after the timeout.
nbd-client -C 2 -timeout 5 -unix nbd.sock -name disk /dev/nbd0
within 10 grep -q '^[1-9]' /sys/block/nbd0/size
echo "guest: connections $(ls /sys/block/nbd0/mq | wc -l)"
mkfs.ext4 -q /dev/nbd0
mount -t ext4 /dev/nbd0 /mnt

# Something is written all the time, and with a connection that is closed it would fail for good.
head -c 65536 /dev/urandom >/tmp/noise
write_on() {
    while [ ! -e /tmp/enough ]; do
        dd if=/tmp/noise of=/mnt/noise bs=4k conv=fsync 2>/tmp/dd || { cat /tmp/dd; return 1; }
        echo >>/tmp/rounds
    done
}
: >/tmp/rounds
write_on &
writer=$!
hand_overs=0
while [ $hand_overs -lt 10 ]; do
    seen=$(wc -l </tmp/rounds)
    take_over
    within 20 sh -c "[ \$(wc -l </tmp/rounds) -gt $seen ]"
    hand_overs=$((hand_overs + 1))
done
touch /tmp/enough
wait "$writer"
cmp /tmp/noise /mnt/noise
rm /mnt/noise
# The kernel says so where a connection is lost or a request is too late.
if dmesg | grep 'block nbd0'; then false; fi
echo "guest: hand-overs $hand_overs"

# Requests are to wait for a server that is gone, which nbd-client cannot say.
xtask inside nbd-netlink --device 0 --dead-connection-timeout 60

write_files &
writer=$!
within 60 test -s /tmp/written
# A third of them, then the server is killed with requests in flight: it is stopped until some are.
within 60 sh -c '[ "$(cat /tmp/written)" -ge 20 ]'
kill -STOP "$server"
within 10 grep -q '[1-9]' /sys/block/nbd0/inflight
in_flight=$(tr -s ' ' </sys/block/nbd0/inflight)
kill -9 "$server"
wait "$server" || true
before=$(cat /tmp/written)
sleep 1
[ "$(cat /tmp/written)" -le $((before + 1)) ]
[ "$before" -lt "$files" ]
serve /dev/vda
xtask inside nbd-netlink --device 0 --dead-connection-timeout 60 --socket nbd.sock --connections 2
wait "$writer"
umount /mnt
e2fsck -fn /dev/nbd0
echo "guest: clean after a restart behind $before of $files files, reads and writes in flight:" \
    $in_flight

# What is read comes from the server, and then from the disk without one.
check_files /dev/nbd0 served
nbd-client -d /dev/nbd0
kill "$server"
wait "$server"
check_files /dev/vda "on the disk"

. /failed_write.sh
