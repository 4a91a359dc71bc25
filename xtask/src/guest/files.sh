# Files on ext4 below /mnt that are written, and looked at again.
files=60

# Writes files of random bytes, each synced before its number is in /tmp/written.
write_files() {
    for number in $(seq "$files"); do
        head -c 300000 /dev/urandom >/tmp/content
        dd if=/tmp/content of="/mnt/$number" bs=64k conv=fsync 2>/tmp/dd || { cat /tmp/dd; return 1; }
        (cd /tmp && sha256sum content | sed "s/content/$number/") >>/tmp/sums
        echo "$number" >/tmp/written
    done
}

# Reads all of them from a device.
check_files() {
    echo 3 >/proc/sys/vm/drop_caches
    mount -t ext4 -o ro "$1" /mnt
    [ "$(wc -l </tmp/sums)" -eq "$files" ]
    (cd /mnt && sha256sum -c /tmp/sums >/tmp/checked)
    umount /mnt
    echo "guest: $2 $(grep -c OK /tmp/checked) files"
}
