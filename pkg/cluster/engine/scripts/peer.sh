# The folder of a run on a machine that shares files with others holds the program, and a hard link to each file that it serves. It needs the links
# because a phase moves the original file into place while other machines still fetch it.

# pp_serve RUN PACKED SUM: unpacks the program, and serves until standard input ends, which is when the run's SSH session ends for any reason.
# It first removes the folder of a run whose machine lost power. fd 3 has the request to serve, as JSON.
pp_serve() {
	rm -rf "$S"/peer-*
	d=$S/peer-$1
	# The shell survives a signal to its process group, so that it can clean up.
	trap : TERM HUP
	code=0
	( pp_run "$d" "$S/staging/$2" "$3" ) || code=$?
	# rm must survive it, too: a child resets the signals that the shell traps, and keeps ignoring those that it ignores.
	trap '' TERM HUP
	# Renamed first: a file that another command shares at this moment would keep the folder.
	[ ! -d "$d" ] || mv "$d" "$d.ended"
	# The kernel may create a link that was requested before the rename while rm reads the folder.
	rm -rf "$d.ended" 2>/dev/null || rm -rf "$d.ended"
	rm -rf "$S/staging/$2"
	exit "$code"
}

pp_run() {
	mkdir -p "$1"
	chmod 700 "$S" "$1"
	gzip -dc "$2" >"$1/pai-peer" || { echo "pai-peer can't be unpacked -> check that gzip is installed, and the free space of /var/lib" >&2; exit 1; }
	rm -f "$2"
	sha_in "$1/pai-peer"
	[ "$sha" = "$3" ] || { echo "pai-peer has the sha256 $sha, not $3 -> check the machine's disk" >&2; exit 1; }
	chmod 700 "$1/pai-peer"
	exec "$1/pai-peer" serve "$R"
}

# pp_share RUN SHA PATH: serves a file that paictl has sent.
pp_share() {
	[ ! -d "$S/peer-$1" ] || ln -f "$R$3" "$S/peer-$1/$2" || [ ! -d "$S/peer-$1" ]
}
