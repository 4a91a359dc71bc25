# ext4 on /dev/vda, which a server outside serves by shared memory, and which is killed and started
# again while files are written.
. /files.sh
[ "$(cat /sys/block/vda/serial)" = gold ]
echo "guest: queues $(ls /sys/block/vda/mq | wc -l), cache $(cat /sys/block/vda/cache_type)"
mkfs.ext4 -q /dev/vda
mount -t ext4 /dev/vda /mnt
write_files &
writer=$!
# The host goes by these lines.
shown=0
while [ "$shown" -lt "$files" ]; do
    number=$(cat /tmp/written 2>/dev/null || :)
    # It is empty while the next number is written.
    number=${number:-$shown}
    [ "$number" -le "$shown" ] || echo "guest: written $number"
    shown=$number
    sleep 0.1
done
wait "$writer"
fstrim /mnt
umount /mnt
e2fsck -fn /dev/vda
check_files /dev/vda read
# A server that goes is no error of the disk.
if dmesg | grep -i 'error'; then false; fi
