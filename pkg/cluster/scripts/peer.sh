# The folder of a run on a machine that shares files with others: the program, and a second name of each file that it serves. A second
# name, since a phase takes the file away to where it belongs while others still want it.

# pp_serve RUN PACKED SUM: unpacks the program, and serves until the standard input ends: with the SSH session of the run, however that ends.
# What a run has left whose machine lost power goes first. What to serve comes by fd 3.
pp_serve() {
	rm -rf "$S"/peer-*
	d=$S/peer-$1
	# The shell outlives a signal to its group, to tidy up.
	trap : TERM HUP
	code=0
	( pp_run "$d" "$S/staging/$2" "$3" ) || code=$?
	# So does rm: what the shell catches ends its children, what it ignores they ignore.
	trap '' TERM HUP
	rm -rf "$d" "$S/staging/$2"
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
	[ ! -d "$S/peer-$1" ] || ln -f "$R$3" "$S/peer-$1/$2"
}
