# The first argument is a file with a line FROM>TO for each mount; the others are the program.
set -e
mount -t tmpfs tmpfs /usr/local
mkdir /usr/local/.machine
mount --rbind / /usr/local/.machine
mount -t tmpfs tmpfs /tmp
while IFS='>' read -r from to; do
	from=/usr/local/.machine$from
	if [ -d "$from" ]; then
		mkdir -p "$to"
	elif [ ! -e "$to" ]; then
		mkdir -p "${to%/*}"
		: >"$to"
	fi
	mount --bind "$from" "$to"
done <"/usr/local/.machine$1"
shift
# How often the kernel ended something for its memory is about all of the machine here.
[ ! -d /sys/fs/cgroup ] || mount -t tmpfs tmpfs /sys/fs/cgroup
mount -t proc proc /proc
umount -l /usr/local/.machine
rmdir /usr/local/.machine
cd /tmp
exec "$@"
