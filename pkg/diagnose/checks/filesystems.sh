# The caller's R is the host's root.

# nearest PATH: sets d to the path, or to the nearest folder above it that exists, and missing to its first part that does not.
nearest() {
	d=$1 missing=
	while [ -n "$d" ] && [ ! -e "$R$d" ]; do
		missing=$d
		d=${d%/*}
	done
	d=${d:-/}
}

# filesystems PATH...: prints "fs path mountpoint KiB free-KiB device inodes free-inodes" of each path, or of the nearest folder above it. As in df, the
# size excludes blocks that are reserved for root or withheld by a quota. A file system without a limit of inodes has 0. If one of them doesn't answer,
# the others are asked one by one.
filesystems() {
	paths=$*
	set --
	for p in $paths; do
		nearest "$p"
		set -- "$@" "$R$d"
	done
	columns=source,itotal,iavail,used,avail,target,file
	{
		timeout 20 df -k --output=$columns "$@" 2>/dev/null || for p; do timeout 5 df -k --output=$columns "$p" 2>/dev/null || :; done
	} | awk -v paths="$paths" -v folders="$*" '
		BEGIN { n = split(paths, path, " "); split(folders, folder, " ") }
		{ for (i = 1; i <= n; i++) if (folder[i] == $NF) fs[i] = sprintf("%s\t%.0f\t%.0f\t%s\t%.0f\t%.0f", $(NF - 1), $(NF - 3) + $(NF - 2), $(NF - 2), $1, $(NF - 5), $(NF - 4)) }
		END { for (i = 1; i <= n; i++) if (i in fs) printf "fs\t%s\t%s\n", path[i], fs[i] }'
}
