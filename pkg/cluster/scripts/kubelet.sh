# v_kubelet WAIT: whether the kubelet, which has just started, stays up: a bad setting ends it
# within a second, and systemd starts it again forever. It counts as up when it was the same
# process for five seconds. With WAIT its node has to be Ready too.
v_kubelet() {
	i=0 same=0 last='' s='' before=''
	while :; do
		now=$(systemctl show -p ActiveState -p MainPID -p NRestarts kubelet.service | sort | tr '\n' ' ')
		case $now in
		ActiveState=active\ *) if [ "$now" = "$last" ]; then same=$((same + 1)); else same=0; fi ;;
		*) same=0 ;;
		esac
		last=$now restarts=${now##*NRestarts=}
		restarts=${restarts%% *}
		before=${before:-$restarts}
		if [ "$same" -ge 10 ]; then
			[ "$1" = 1 ] || return 0
			s=$(ready)
			case $s in True*) return 0 ;; esac
		elif [ $((${restarts:-0} - ${before:-0})) -ge 4 ] || [ "$i" -ge 60 ]; then
			echo "the kubelet does not stay up: $(unit_cause kubelet.service) -> see journalctl -u kubelet on the host" >&2
			exit 1
		fi
		i=$((i + 1))
		[ "$i" -lt 360 ] || never_ready "$s"
		sleep 0.5
	done
}
