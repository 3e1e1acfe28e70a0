# A mutating script of an earlier run may still be at work, orphaned by a lost
# connection. What it leaves behind is what we want to see, so wait for it.
if [ -e "$LOCK" ]; then
	exec 9<"$LOCK"
	flock -s -w 300 9 || { echo "a script of another paictl run is still at work on this host" >&2; exit 75; }
fi

# d_files: lines "path<TAB>sha256<TAB>p|s" on standard input, p for public. Prints
# "file path mode sha [base64]": the content only of public files that differ.
d_files() {
	while IFS=$TAB read -r p want kind; do
		f=$R$p
		if [ ! -f "$f" ]; then
			printf 'file\t%s\tabsent\n' "$p"
			continue
		fi
		have=$(sha256sum <"$f" | cut -c1-64)
		mode=$(stat -c %a "$f")
		body=
		if [ "$have" != "$want" ] && [ "$kind" = p ] && [ "$(stat -c %s "$f")" -lt 65536 ]; then
			body=$(base64 <"$f" | tr -d '\n')
		fi
		printf 'file\t%s\t%s\t%s\t%s\n' "$p" "$mode" "$have" "$body"
	done
}

# d_artifacts: paths on standard input. Prints "art path mode sha". The hash comes from the
# stamp that apply left, while size, change time and inode are still the same.
d_artifacts() {
	while read -r p; do
		f=$R$p
		if [ ! -f "$f" ]; then
			printf 'art\t%s\tabsent\n' "$p"
			continue
		fi
		now=$(stat -c '%s %.9Z %i' "$f")
		sha=
		if [ -f "$S/stamps" ]; then
			sha=$(awk -F '\t' -v p="$p" -v now="$now" '$1 == p && $3 == now { s = $2 } END { print s }' "$S/stamps")
		fi
		[ -n "$sha" ] || sha=$(sha256sum <"$f" | cut -c1-64)
		printf 'art\t%s\t%s\t%s\n' "$p" "$(stat -c %a "$f")" "$sha"
	done
}

# d_block PATH: prints the managed block of a file.
d_block() {
	body=
	if [ -f "$R$1" ]; then
		body=$(awk '/^# BEGIN paictl$/ { on = 1; next } /^# END paictl$/ { on = 0 } on' "$R$1" | base64 | tr -d '\n')
	fi
	printf 'block\t%s\t%s\n' "$1" "$body"
}

# d_module NAME PROBE: a module counts as loaded when the kernel has it built in or when
# the file that it makes is there.
d_module() {
	if [ -d "$R/sys/module/$1" ] || { [ -n "$2" ] && [ -e "$R$2" ]; } || grep -qs "[[:space:]]$1\$" "$R/proc/filesystems"; then
		printf 'module\t%s\tloaded\n' "$1"
	else
		printf 'module\t%s\tabsent\n' "$1"
	fi
}

# d_sysctl KEY: a dot in a key is a slash in /proc/sys.
d_sysctl() {
	f=$R/proc/sys/$(printf %s "$1" | tr . /)
	v=absent
	if [ -r "$f" ]; then v=$(tr '\t\n' '  ' <"$f" | sed 's/ *$//'); fi
	printf 'sysctl\t%s\t%s\n' "$1" "$v"
}

# d_unit NAME PATH...: prints "unit name enabled active fresh|stale"; stale is one that was
# started from other files than those that are there now.
d_unit() {
	u=$1
	shift
	e=$(systemctl is-enabled "$u" 2>/dev/null) || e=${e:-absent}
	a=$(systemctl is-active "$u" 2>/dev/null) || a=${a:-inactive}
	st=stale
	if [ "$(cat "$S/units/$u" 2>/dev/null)" = "$(unit_hash "$@")" ]; then st=fresh; fi
	printf 'unit\t%s\t%s\t%s\t%s\n' "$u" "$e" "$a" "$st"
}

# d_journal: which phases the journal says were begun and finished, the last word of each.
d_journal() {
	[ -f "$S/journal" ] || return 0
	awk -F '\t' '$4 == "begin" || $4 == "done" { last[$3] = $4 } END { for (p in last) printf "journal\t%s\t%s\n", p, last[p] }' "$S/journal"
}
