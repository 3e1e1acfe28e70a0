# Prints reports about a machine. Each section is one command with a limit of time and of size, so that
# it can't hang or fill a disk. Given by the caller: MARK, which no command prints; SINCE, as journalctl reads
# it, or empty; R, the root of a simulated machine in tests, otherwise empty.
export R SINCE

# section NAME SECONDS HEAD TAIL COMMAND: keeps the first HEAD and the last TAIL bytes of a longer answer. An answer of exactly
# that size was longer. The end of the section counts as a part of the answer.
section() {
	printf '\n%s begin %s %s %s\n' "$MARK" "$1" "$3" "$4"
	{
		timeout -k 2 "$2" sh -c "$5" 2>&1 </dev/null
		printf '\n%s end %s\n' "$MARK" $?
	} | {
		head -c "$3"
		tail -c "$4"
	}
}

# journal UNIT...: that of the first that there is.
JOURNAL='journal() {
	for u; do
		if systemctl cat "$u" >/dev/null 2>&1; then
			echo "unit $u"
			if [ -n "$SINCE" ]; then journalctl -u "$u" --no-pager -o short-iso --since "$SINCE"; else journalctl -u "$u" --no-pager -o short-iso; fi
			return
		fi
	done
	echo "none of these units is there: $*"
	return 4
}
'

section os.txt 10 60000 60000 'uname -a; cat "$R/etc/os-release"; echo; cat "$R/proc/uptime" "$R/proc/loadavg" "$R/proc/cmdline"; echo; lscpu || cat "$R/proc/cpuinfo"'
section mounts.txt 10 200000 200000 'cat "$R/proc/mounts"; echo; cat "$R/proc/swaps"; echo; lsblk'
section disks.txt 15 100000 100000 'df -hT; echo; df -i'
section memory.txt 10 60000 60000 'cat "$R/proc/meminfo"; echo; cat "$R"/proc/pressure/*'
section time.txt 15 60000 60000 'date -u +%Y-%m-%dT%H:%M:%SZ; timedatectl; timedatectl timesync-status; chronyc -n tracking; chronyc -n sources'
section sysctl.txt 15 200000 200000 'sysctl -a'
section modules.txt 10 60000 60000 'cat "$R/proc/modules"'
section network.txt 15 200000 200000 'ip -d address; echo; ip route; ip rule; echo; ss -lntu; echo; cat "$R/etc/resolv.conf"'
section units.txt 15 200000 200000 'for u in kubelet containerd chrony chronyd systemd-timesyncd paictl-certificates.timer nvidia-persistenced; do systemctl status --no-pager -n 0 "$u"; echo; done; systemctl --failed --no-pager'
section kubelet-journal.txt 30 200000 800000 "$JOURNAL"'journal kubelet'
section containerd-journal.txt 30 200000 800000 "$JOURNAL"'journal containerd'
section time-journal.txt 30 50000 200000 "$JOURNAL"'journal chrony chronyd systemd-timesyncd'
section kernel-log.txt 15 50000 500000 'dmesg -T || dmesg'
section paictl-journal.txt 10 50000 500000 'cat "$R/var/lib/paictl/journal"'
section etc-kubernetes.txt 15 100000 100000 'ls -laR "$R/etc/kubernetes"; for f in "$R"/etc/kubernetes/pki/*.crt "$R"/etc/kubernetes/pki/etcd/*.crt; do [ -f "$f" ] || continue; echo; echo "$f"; openssl x509 -noout -subject -issuer -dates -in "$f"; done'
section nvidia-smi.txt 30 400000 400000 'if ! command -v nvidia-smi >/dev/null; then echo "there is no nvidia-smi"; exit 4; fi; nvidia-smi; nvidia-smi -q'
