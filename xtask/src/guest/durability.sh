# Clients of a server whose disk is a device of dm-log-writes: /dev/vda below it, the log on
# /dev/vdb, and what the clients did on /dev/vdc.
dmsetup create logged --table "0 $(cat /sys/block/vda/size) log-writes /dev/vda /dev/vdb"
# Told that the device has no cache, the kernel drops the flushes for it.
if [ "$flushes" = dropped ]; then
    echo "write through" >/sys/block/dm-0/queue/write_cache
fi
serve /dev/dm-0
socket=nbd.sock
[ "$by" = nbd ] || socket=disk.vhost
xtask inside clients --socket "$socket" --by "$by" --seed "$seed" --marks "$marks" --device logged \
    --record /dev/vdc
kill "$server"
wait "$server"
dmsetup remove logged
